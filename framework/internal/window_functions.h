// Window functions of signal processing: weights that fade out a frame of a signal towards its
// ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace keel::internal {

// Returns the n weights of a sum of cosines: "boxcar" (all 1), "hann", "hamming" or "blackman", or
// nothing for other names. The only weight of a symmetric window of one element is 1. A periodic
// window is a symmetric one of n + 1 elements without the last.
std::optional<std::vector<double>> cosine_window(std::string_view name, int64_t n, bool periodic);

}  // namespace keel::internal
