#include <keel/framework/kernels/half.h>

#include <algorithm>
#include <cmath>

#include <keel/framework/kernels/half_parts.h>

namespace keel::kernels {
namespace {

constexpr uint32_t kSign = 0x80000000U;
constexpr uint32_t kInfinity = 0x7F800000U;

// Integer arithmetic without branches, so that the loops below are vectorized. NaN becomes quiet:
// truncating its fraction could otherwise make an infinity.
inline uint16_t nearest_bfloat16(float value) {
  constexpr uint32_t kLargest = 0x7F7FU;
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & ~kSign;
  const uint32_t raised = magnitude + 0x7FFFU + (magnitude >> 16U & 1U);
  const uint32_t finite = std::min(raised >> 16U, kLargest);
  const uint32_t special = magnitude >> 16U | (magnitude > kInfinity ? 0x40U : 0U);
  return static_cast<uint16_t>((magnitude < kInfinity ? finite : special) | (bits & kSign) >> 16U);
}

// Selects without a branch.
inline uint32_t chosen(bool first, uint32_t a, uint32_t b) {
  const uint32_t mask = 0U - static_cast<uint32_t>(first);
  return (a & mask) | (b & ~mask);
}

// Returns 1 if `bits`, in units of bit `dropped`, must be rounded up to the nearest unit (ties to
// even), else 0.
inline uint32_t up(uint32_t bits, uint32_t dropped) {
  const uint32_t rest = bits & ((1U << dropped) - 1);
  return rest + (bits >> dropped & 1U) > 1U << (dropped - 1) ? 1U : 0U;
}

inline uint16_t nearest_float16(float value) {
  constexpr uint32_t kSmallestNormal = 113U << 23U;  // 2^-14
  constexpr uint32_t kLargest = 0x7BFFU;
  constexpr uint32_t kFraction = 24;  // fraction bits kept below the units of a subnormal number
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & ~kSign;
  // Normal numbers: replace the exponent bias and drop 13 fraction bits.
  const uint32_t moved = magnitude - (112U << 23U);
  const uint32_t normal = std::min((moved >> 13U) + up(moved, 13U), kLargest);
  // Subnormal numbers are counts of 2^-24. The kFraction bits lose precision only for numbers below
  // half a unit, which round to zero anyway.
  const float steps = std::bit_cast<float>(std::min(magnitude, kSmallestNormal)) * 0x1p24F;
  const auto whole = static_cast<int32_t>(steps);
  const auto rest = static_cast<int32_t>((steps - static_cast<float>(whole)) *
                                         static_cast<float>(1 << kFraction));
  const uint32_t small =
      static_cast<uint32_t>(whole) +
      up(static_cast<uint32_t>(whole) << kFraction | static_cast<uint32_t>(rest), kFraction);
  // GCC 12 compiles conditional expressions over computations of this length to branches and does
  // not vectorize the loop; chosen() uses masks instead.
  const uint32_t finite = chosen(magnitude < kSmallestNormal, small, normal);
  const uint32_t special = 0x7C00U | (magnitude > kInfinity ? 0x200U : 0U);
  return static_cast<uint16_t>(chosen(magnitude < kInfinity, finite, special) |
                               (bits & kSign) >> 16U);
}

inline float as_float16(float value) {
  constexpr uint32_t kSmallestNormal = 113U << 23U;  // 2^-14
  constexpr float kOverflow = 65520;                 // half a unit above the largest number
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & ~kSign;
  const uint32_t normal = (magnitude + 0xFFFU + (magnitude >> 13U & 1U)) & ~0x1FFFU;
  // The numbers in [0.5, 1) have the spacing of Float16's subnormal ones, 2^-24.
  const float small = std::bit_cast<float>(std::min(magnitude, kSmallestNormal)) + 0.5F;
  const auto subnormal = std::bit_cast<uint32_t>(small - 0.5F);
  const uint32_t finite = chosen(magnitude < kSmallestNormal, subnormal, normal);
  const uint32_t special = magnitude > kInfinity ? magnitude : kInfinity;
  return std::bit_cast<float>(
      chosen(magnitude < std::bit_cast<uint32_t>(kOverflow), finite, special) | (bits & kSign));
}

}  // namespace

void to_floats(const BFloat16* from, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = to_float(from[i]);
}
void to_floats(const Float16* from, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = to_float(from[i]);
}

void round_to_nearest(const float* __restrict from, int64_t n, BFloat16* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i].bits = nearest_bfloat16(from[i]);
}
void round_to_nearest(const float* __restrict from, int64_t n, Float16* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i].bits = nearest_float16(from[i]);
}

void round_as_float16(const float* from, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = as_float16(from[i]);
}

}  // namespace keel::kernels
