// Searches float arrays for NaN and infinity.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

namespace keel::kernels {

// Position of the first value that is NaN or infinite; -1 if there is none. Reads the exponents as
// integers, without a branch for each value, so that compilers vectorize it even with -ffast-math.
inline int64_t first_not_finite(std::span<const float> values) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t largest = 0;
  for (const float x : values) largest = std::max(largest, std::bit_cast<uint32_t>(x) & kExponent);
  if (largest != kExponent) return -1;
  const auto found = std::ranges::find_if(
      values, [](float x) { return (std::bit_cast<uint32_t>(x) & kExponent) == kExponent; });
  return found - values.begin();
}

}  // namespace keel::kernels
