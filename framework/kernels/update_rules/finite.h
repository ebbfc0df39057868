// first_not_finite: searches float arrays for NaN and infinity.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

namespace keel::kernels {

// Returns the position of the first value that is NaN or infinite, or -1 if there is none. Reads
// the exponents as integers, without a branch per value, so compilers vectorize the loop and
// -ffast-math does not affect it.
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
