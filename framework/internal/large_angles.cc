#include <keel/framework/internal/large_angles.h>

#include <array>
#include <bit>
#include <cstdint>

namespace keel::math {
namespace {

__extension__ using Wide = unsigned __int128;

// The bits of 2 / pi after the binary point.
constexpr std::array<uint64_t, 20> kTwoOverPi = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d};

// Returns 64 bits of 2 / pi from this bit on; bits before the binary point are 0.
uint64_t bits_from(int bit) {
  const int word = (bit + 64) / 64 - 1, shift = bit - 64 * word;
  const uint64_t high = word < 0 ? 0 : kTwoOverPi[word], low = kTwoOverPi[word + 1];
  return shift == 0 ? high : high << shift | low >> (64 - shift);
}

// The angle is rest + quarters pi / 2, where |rest| is at most pi / 4.
struct ReducedAngle {
  double rest;
  uint64_t quarters;  // modulo 4
};

// Payne and Hanek 1983, "Radian reduction for trigonometric functions": multiplies by those bits of
// 2 / pi that decide the quarter and the rest. Earlier bits contribute multiples of a full turn. No
// double is closer to a multiple of pi / 2 than 2^-62 quarters, and the product has an error below
// 2^-137 quarters.
ReducedAngle reduce(double magnitude) {
  const auto bits = std::bit_cast<uint64_t>(magnitude);
  const int exponent = static_cast<int>(bits >> 52U) - 1075;
  const uint64_t significand = (bits & ((uint64_t{1} << 52U) - 1)) | uint64_t{1} << 52U;
  const int first = exponent - 2;
  // 192 bits of the fraction of a full turn, the highest ones first.
  Wide product = Wide{significand} * bits_from(first + 128);
  const auto third = static_cast<uint64_t>(product);
  product = Wide{significand} * bits_from(first + 64) + static_cast<uint64_t>(product >> 64U);
  const auto second = static_cast<uint64_t>(product);
  const uint64_t top = significand * bits_from(first) + static_cast<uint64_t>(product >> 64U);

  uint64_t quarters = top >> 62U;
  Wide fraction = Wide{top << 2U | second >> 62U} << 64U | (second << 2U | third >> 62U);
  const bool negative = (fraction >> 127U) != 0;
  if (negative) {
    fraction = -fraction;
    ++quarters;
  }
  if (fraction == 0) return {0, quarters & 3U};
  const auto upper = static_cast<uint64_t>(fraction >> 64U);
  const int zeros =
      upper != 0 ? std::countl_zero(upper) : 64 + std::countl_zero(static_cast<uint64_t>(fraction));
  const auto leading = static_cast<uint64_t>(fraction << static_cast<unsigned>(zeros) >> 64U);
  // Two parts that are exact, times pi / 2 in two parts.
  const double scale = std::bit_cast<double>(static_cast<uint64_t>(1023 - 64 - zeros) << 52U);
  const double high = static_cast<double>(leading & ~uint64_t{0x7ff}) * scale;
  const double low = static_cast<double>(leading & 0x7ff) * scale;
  constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiTail = 0x1.1a62633145c07p-54;
  const double tail = high * kHalfPiTail + low * kHalfPi;
  const double rest = multiply_add(high, kHalfPi, tail);
  return {negative ? -rest : rest, quarters & 3U};
}

double shifted_sin_of_large(double magnitude, uint64_t shift) {
  const auto [rest, quarters] = reduce(magnitude);
  const uint64_t quadrant = quarters + shift;
  const double value = (quadrant & 1U) != 0 ? internal::short_cos(rest) : internal::short_sin(rest);
  return (quadrant & 2U) != 0 ? -value : value;
}

}  // namespace

double sin_of_large(double x) {
  if (!std::isfinite(x)) return x - x;
  const double value = shifted_sin_of_large(std::abs(x), 0);
  return x < 0 ? -value : value;
}

double cos_of_large(double x) {
  return std::isfinite(x) ? shifted_sin_of_large(std::abs(x), 1) : x - x;
}

}  // namespace keel::math
