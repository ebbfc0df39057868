// The parts that the functions of math.h share: reductions of arguments, and polynomials.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace keel::math {

// Returns x y + z, rounded once. On machines without a fused instruction it rounds twice, because
// the C library's fma() would be a hundred times slower than the rest of a function.
[[gnu::always_inline]] inline double multiply_add(double x, double y, double z) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fma(x, y, z);
#else
  return x * y + z;
#endif
}

namespace internal {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// log(2) in two parts. The high part has 42 bits, so that its products with exponents are exact.
inline constexpr double kLog2High = 0x1.62e42fefa38p-1;
inline constexpr double kLog2Low = 0x1.ef35793c7673p-45;
inline constexpr double kLog2E = 0x1.71547652b82fep+0;

// Adding kRounder rounds a number below 2^51 to an integer, which is then in the lowest bits.
inline constexpr double kRounder = 0x1.8p52;
[[gnu::always_inline]] inline double nearest_integer(double x) { return (x + kRounder) - kRounder; }

// Returns 2^n for an integer n in [-1022, 1023].
[[gnu::always_inline]] inline double power_of_two(double n) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(n + (kRounder + 1023)) << 52U);
}

// Returns c + rest[0] x + rest[1] x^2 + ...
template <class... Rest>
[[gnu::always_inline]] inline double polynomial(double x, double c, Rest... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return c;
  } else {
    return multiply_add(polynomial(x, rest...), x, c);
  }
}

// The decomposition x = exponent log(2) + rest with |rest| <= log(2) / 2. The exponent is split
// into two parts, because 2^exponent may be outside the range of a double while the result is not.
struct ExpArgument {
  double rest, first_exponent, second_exponent;
};
[[gnu::always_inline]] inline ExpArgument reduce_exp_argument(double x) {
  const double exponent = nearest_integer(x * kLog2E);
  const double first = nearest_integer(exponent * 0.5);
  return {.rest = multiply_add(-exponent, kLog2Low, multiply_add(-exponent, kLog2High, x)),
          .first_exponent = first,
          .second_exponent = exponent - first};
}
// Clamps x to the range outside of which exp() is infinite or zero. NaN stays NaN.
[[gnu::always_inline]] inline double limit_exp_argument(double x) {
  return x < -746 ? -746 : x > 710 ? 710 : x;
}

// Returns (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2.
[[gnu::always_inline]] inline double exp_tail(double r) {
  return polynomial(r, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
                    1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600,
                    1.0 / 6227020800.0);
}

// The decomposition x = 2^exponent significand with sqrt(1/2) <= significand < sqrt(2), for a
// positive finite x.
struct Parts {
  double exponent, significand;
};
[[gnu::always_inline]] inline Parts split(double x) {
  constexpr uint64_t kOne = std::bit_cast<uint64_t>(1.0);
  constexpr uint64_t kRootHalf = std::bit_cast<uint64_t>(0x1.6a09e667f3bcdp-1);
  const bool is_subnormal = x < std::numeric_limits<double>::min();
  const auto bits = std::bit_cast<uint64_t>(is_subnormal ? x * 0x1p54 : x);
  const uint64_t biased = (bits + (kOne - kRootHalf)) >> 52U;
  // AVX2 cannot convert 64-bit integers to double, so the exponent is placed in the low bits of
  // 2^52.
  const double exponent = std::bit_cast<double>(biased | std::bit_cast<uint64_t>(0x1p52));
  return {.exponent = exponent - (0x1p52 + 1023) - (is_subnormal ? 54 : 0),
          .significand = std::bit_cast<double>(bits - ((biased - 1023) << 52U))};
}

// Returns log((1 + s) / (1 - s)) / s - 2 for z = s^2, |s| <= 0.1716.
[[gnu::always_inline]] inline double log_tail(double z) {
  return z * polynomial(z, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15,
                        2.0 / 17, 2.0 / 19, 2.0 / 21);
}

// Return the sine and the cosine of an angle of at most pi / 4.
[[gnu::always_inline]] inline double short_sin(double x) {
  const double z = x * x;
  return multiply_add(
      x * z,
      polynomial(z, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800,
                 1.0 / 6227020800.0, -1.0 / 1307674368000.0, 1.0 / 355687428096000.0),
      x);
}
[[gnu::always_inline]] inline double short_cos(double x) {
  const double z = x * x;
  const double half = 0.5 * z, leading = 1 - half;
  const double rest =
      polynomial(z, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600,
                 -1.0 / 87178291200.0, 1.0 / 20922789888000.0, -1.0 / 6402373705728000.0);
  return leading + multiply_add(z * z, rest, (1 - leading) - half);
}
// Returns sin(x + quarters pi / 2).
[[gnu::always_inline]] inline double shifted_sin(double x, uint64_t quarters) {
  const double turns = nearest_integer(x * 0x1.45f306dc9c883p-1);
  // Subtracts pi / 2 in three parts, 160 bits in total.
  double rest = multiply_add(-turns, 0x1.921fb54442d18p+0, x);
  rest = multiply_add(-turns, 0x1.1a62633145c07p-54, rest);
  rest = multiply_add(-turns, -0x1.f1976b7ed8fbcp-110, rest);
  const uint64_t quadrant = std::bit_cast<uint64_t>(turns + kRounder) + quarters;
  const double value = (quadrant & 1U) != 0 ? short_cos(rest) : short_sin(rest);
  return (quadrant & 2U) != 0 ? -value : value;
}

}  // namespace internal

}  // namespace keel::math
