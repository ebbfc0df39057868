// Elementary functions that give the same bits on every machine.
//
// The C library selects its exp(), log() and tanh() by processor and changes them between releases,
// so they must not be used where a result depends on them. The functions here are fixed sequences
// of IEEE 754 operations: x86-64 with fused multiply-add (x86-64-v3 and later) and 64-bit ARM give
// the same bits with any compiler and any vector width. The functions have no branches except where
// noted, so that compilers vectorize loops over them.
//
// Errors are below 1 unit in the last place for exp and log, 2 for expm1, log1p, erf, exp2, log2,
// sin and cos, and 3 for pow, tanh, sigmoid and softplus. The float overloads compute in double and
// round once, so that almost all of their results are the nearest float. NaN, infinite, zero and
// subnormal arguments and results follow Annex F of the C standard.
#pragma once

#include <cmath>

#include <keel/framework/internal/math_parts.h>

namespace keel::math {

// Returns e^x.
[[gnu::always_inline]] inline double exp(double x) {
  const auto [rest, first, second] = internal::reduce_exp_argument(internal::limit_exp_argument(x));
  const double value = multiply_add(rest * rest, internal::exp_tail(rest), rest) + 1;
  return value * internal::power_of_two(first) * internal::power_of_two(second);
}

// Returns exp(x) - 1 with full precision for small x.
[[gnu::always_inline]] inline double expm1(double x) {
  const auto [rest, first, second] = internal::reduce_exp_argument(internal::limit_exp_argument(x));
  const double value = multiply_add(rest * rest, internal::exp_tail(rest), rest);
  // Computes 2^(first + second) (value + 1) - 1.
  const double scale = internal::power_of_two(first), one = internal::power_of_two(-second);
  const double result = multiply_add(value, scale, scale - one) * internal::power_of_two(second);
  return x == 0 ? x : result;
}

// Returns the natural logarithm.
[[gnu::always_inline]] inline double log(double x) {
  const auto [exponent, significand] = internal::split(x);
  const double f = significand - 1;
  const double s = f / (2 + f);
  const double half = 0.5 * f * f;
  // log(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + tail)), where the largest term f is exact.
  const double correction =
      multiply_add(s, half + internal::log_tail(s * s), exponent * internal::kLog2Low);
  const double result = exponent * internal::kLog2High - ((half - correction) - f);
  const double special = x == 0 ? -internal::kInfinity : internal::kNaN;
  return x > 0 ? (x < internal::kInfinity ? result : x) : special;
}

// Returns log(1 + x) with full precision for small x.
[[gnu::always_inline]] inline double log1p(double x) {
  const double sum = 1 + x;
  const double part = sum - 1;
  const double lost = (1 - (sum - part)) + (x - part);  // exact rounding error of 1 + x
  const double result = log(sum);
  const double corrected = result + lost / sum;
  const bool is_regular = sum > 0 && sum < internal::kInfinity && x != 0;
  return is_regular ? corrected : x == 0 ? x : result;
}

// Returns the hyperbolic tangent.
[[gnu::always_inline]] inline double tanh(double x) {
  const double magnitude = std::abs(x);
  const double power = expm1(2 * (magnitude > 22 ? 22 : magnitude));
  return std::copysign(power / (power + 2), x);
}

// Returns 1 / (1 + exp(-x)).
[[gnu::always_inline]] inline double sigmoid(double x) { return 1 / (1 + exp(-x)); }

// Returns log(1 + exp(x)).
[[gnu::always_inline]] inline double softplus(double x) {
  return (x < 0 ? 0 : x) + log1p(exp(-std::abs(x)));
}

// Returns the error function. Its polynomials are Chebyshev fits: for |x| < 1 of erf(x) / x in x^2,
// otherwise of exp(x^2) (1 - erf(x)) in (x - 3) / (x + 3).
[[gnu::always_inline]] inline double erf(double x) {
  const double magnitude = std::abs(x);
  const double square = x * x;
  const double small = x * internal::polynomial(square, 0x1.20dd750429b6dp+0, -0x1.812746b0379c1p-2,
                                                0x1.ce2f21a040f66p-4, -0x1.b82ce31203772p-6,
                                                0x1.565bccfa44156p-8, -0x1.c02db0665e53dp-11,
                                                0x1.f9a2be4f731a1p-14, -0x1.f4ca838adb73bp-17,
                                                0x1.b981d78881a5dp-20, -0x1.5c131500d3f88p-23,
                                                0x1.d76af6ca49787p-27, -0x1.ac9585a44fe29p-31);
  const double large = magnitude > 6 ? 6 : magnitude;
  const double scaled = internal::polynomial(
      (large - 3) / (large + 3), 0x1.6e9827d229d2dp-3, -0x1.4e102b9cf8513p-2, 0x1.f6ff204105a04p-3,
      -0x1.336ffbef08b8ap-3, 0x1.258b13b00ec66p-4, -0x1.8fa58eb5ea92cp-6, 0x1.17c839090a469p-8,
      0x1.73101f6d2e434p-11, -0x1.39085f2b38287p-11, 0x1.7b9ef7977ceafp-15, 0x1.0cb2e63fe2177p-14,
      -0x1.af086905fc57fp-17, -0x1.0cc37e8e915adp-17, 0x1.0e3fb74fdc507p-19, 0x1.56695202d55bcp-20,
      0x1.d0badb83f2cadp-29);
  const double rest = std::copysign(1 - exp(-(large * large)) * scaled, x);
  return magnitude < 1 ? small : x != x ? x : rest;
}

// Returns x^y, with C's results for special arguments. Has branches.
[[gnu::always_inline]] inline double pow(double x, double y) {
  if (x == 1 || y == 0) return 1;
  if (x != x || y != y) return internal::kNaN;
  const double magnitude = std::abs(x);
  // All doubles of 2^53 or more are even integers.
  const bool is_integer = std::abs(y) >= 0x1p53 || std::floor(y) == y;
  const bool is_odd = is_integer && std::abs(y) < 0x1p53 && std::floor(y / 2) != y / 2;
  const bool is_negative = std::signbit(x) && is_odd;
  if (std::abs(y) == internal::kInfinity) {
    if (magnitude == 1) return 1;
    return (magnitude > 1) == (y > 0) ? internal::kInfinity : 0;
  }
  if (magnitude == 0 || magnitude == internal::kInfinity) {
    const double result = (magnitude == 0) == (y > 0) ? 0 : internal::kInfinity;
    return is_negative ? -result : result;
  }
  if (x < 0 && !is_integer) return internal::kNaN;
  // Computes log(magnitude) as the sum of two doubles, some 60 bits, because the product with y
  // magnifies its error.
  const auto [exponent, significand] = internal::split(magnitude);
  const double f = significand - 1;
  const double divisor = f + 2;
  const double s = f / divisor;
  const double divisor_low = f - (divisor - 2);
  const double s_low = (multiply_add(-s, divisor, f) - s * divisor_low) / divisor;
  const double low = multiply_add(s, internal::log_tail(s * s), 2 * s_low);
  const double whole = exponent * internal::kLog2High;
  const double sum = whole + 2 * s;
  const double lost = exponent == 0 ? 0 : (whole - sum) + 2 * s;
  const double rest_of_log = lost + multiply_add(exponent, internal::kLog2Low, low);
  const double log_high = sum + rest_of_log;
  const double log_low = (sum - log_high) + rest_of_log;
  const double high = y * log_high;
  if (!(std::abs(high) < 800)) {
    const double result = high > 0 ? internal::kInfinity : 0;
    return is_negative ? -result : result;
  }
  const double product_low = multiply_add(y, log_low, multiply_add(y, log_high, -high));
  const auto [rest, first, second] =
      internal::reduce_exp_argument(internal::limit_exp_argument(high));
  const double r = rest + product_low;
  const double value = multiply_add(r * r, internal::exp_tail(r), r) + 1;
  const double result = value * internal::power_of_two(first) * internal::power_of_two(second);
  return is_negative ? -result : result;
}

// Returns 2^x. Exact for integers x for which 2^x is a double.
[[gnu::always_inline]] inline double exp2(double x) {
  const double limited = x < -1080 ? -1080 : x > 1030 ? 1030 : x;
  const double exponent = internal::nearest_integer(limited);
  const double first = internal::nearest_integer(exponent * 0.5);
  const double rest = (limited - exponent) * 0x1.62e42fefa39efp-1;
  const double value = multiply_add(rest * rest, internal::exp_tail(rest), rest) + 1;
  return value * internal::power_of_two(first) * internal::power_of_two(exponent - first);
}

// Returns the base-2 logarithm. Exact for powers of two.
[[gnu::always_inline]] inline double log2(double x) {
  const auto [exponent, significand] = internal::split(x);
  const double result = multiply_add(log(significand), internal::kLog2E, exponent);
  const double special = x == 0 ? -internal::kInfinity : internal::kNaN;
  return x > 0 ? (x < internal::kInfinity ? result : x) : special;
}

// Return the sine and the cosine of an angle in radians of magnitude below 2^45.
[[gnu::always_inline]] inline double sin(double x) {
  return x == 0 ? x : internal::shifted_sin(x, 0);
}
[[gnu::always_inline]] inline double cos(double x) { return internal::shifted_sin(x, 1); }

// The functions of float arguments compute in double and round once.
[[gnu::always_inline]] inline float exp(float x) {
  return static_cast<float>(exp(static_cast<double>(x)));
}
[[gnu::always_inline]] inline float expm1(float x) {
  return static_cast<float>(expm1(static_cast<double>(x)));
}
[[gnu::always_inline]] inline float log(float x) {
  return static_cast<float>(log(static_cast<double>(x)));
}
[[gnu::always_inline]] inline float log1p(float x) {
  return static_cast<float>(log1p(static_cast<double>(x)));
}
[[gnu::always_inline]] inline float tanh(float x) {
  return static_cast<float>(tanh(static_cast<double>(x)));
}
[[gnu::always_inline]] inline float sigmoid(float x) {
  return static_cast<float>(sigmoid(static_cast<double>(x)));
}
[[gnu::always_inline]] inline float softplus(float x) {
  return static_cast<float>(softplus(static_cast<double>(x)));
}
[[gnu::always_inline]] inline float erf(float x) {
  return static_cast<float>(erf(static_cast<double>(x)));
}
[[gnu::always_inline]] inline float pow(float x, float y) {
  return static_cast<float>(pow(static_cast<double>(x), static_cast<double>(y)));
}

}  // namespace keel::math
