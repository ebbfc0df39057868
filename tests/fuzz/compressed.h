// Bytes as zlib packs them.
#pragma once

#include <string>
#include <string_view>

namespace keel::fuzz {

inline constexpr int kGzip = 15 + 16;  // as zlib calls the forms: by `window_bits`
inline constexpr int kZlib = 15;

std::string compressed(std::string_view bytes, int window_bits);

}  // namespace keel::fuzz
