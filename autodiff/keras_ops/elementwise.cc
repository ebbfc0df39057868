#include <keel/autodiff/keras_ops/elementwise.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include <keel/autodiff/keras_ops/internal/function_op.h>
#include <keel/autodiff/ops.h>
#include <keel/framework/internal/large_angles.h>
#include <keel/framework/internal/math.h>

namespace keel::keras_ops {
namespace {

using internal::BinaryFunction;
using internal::countable;
using internal::floating;
using internal::promoted;
using internal::promoted_floating;
using internal::UnaryFunction;

constexpr double kPi = std::numbers::pi;
constexpr double kLn2 = std::numbers::ln2;

// ---- Formulas. `x` and `y` of a slope are the operand and the result.

Tensor inverse(const Tensor& x) { return Tensor::scalar(1.0).cast(x.dtype()) / x; }

double bessel(double x, int order) {
  // The power series has positive terms only, so nothing cancels.
  const double half = 0.5 * x, square = half * half;
  double term = order == 0 ? 1 : half, sum = term;
  for (int k = 1; std::abs(term) > 1e-17 * std::abs(sum); ++k) {
    term *= square / (static_cast<double>(k) * (k + order));
    sum += term;
  }
  return sum;
}

// Winitzki's approximation, made exact by Newton steps.
double inverse_erf(double x) {
  if (!(std::abs(x) < 1)) {
    return std::abs(x) == 1 ? std::copysign(std::numeric_limits<double>::infinity(), x)
                            : std::numeric_limits<double>::quiet_NaN();
  }
  const double a = 0.147, l = math::log1p(-x * x), b = 2 / (kPi * a) + 0.5 * l;
  double y = std::copysign(std::sqrt(std::sqrt(b * b - l / a) - b), x);
  for (int i = 0; i < 4; ++i) {
    y -= (std::erf(y) - x) * 0.5 / std::numbers::inv_sqrtpi * math::exp(y * y);
  }
  return y;
}

// The series for x < a + 1 and otherwise Lentz's continued fraction of the complement.
double lower_gamma(double a, double x) {
  if (!(a > 0) || !(x >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return 0;
  if (std::isinf(x)) return 1;
  int sign = 0;
  const double scale = math::exp(a * math::log(x) - x - ::lgamma_r(a, &sign));
  if (x < a + 1) {
    double term = 1 / a, sum = term;
    for (double k = a + 1; term > 1e-17 * sum; ++k) sum += term *= x / k;
    return sum * scale;
  }
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int i = 1; i < 1000; ++i) {
    const double n = -i * (i - a);
    b += 2;
    d = 1 / (n * d + b);
    c = b + n / c;
    h *= d * c;
    if (std::abs(d * c - 1) < 1e-16) break;
  }
  return 1 - scale * h;
}

constexpr UnaryFunction kReciprocal = {
    "reciprocal", [](double x) { return 1 / x; },
    [](const Tensor&, const Tensor& y) { return -ops::square(y); }};
constexpr UnaryFunction kCbrt = {
    "cbrt", [](double x) { return std::cbrt(x); },
    [](const Tensor&, const Tensor& y) { return inverse(3.0 * ops::square(y)); }};
constexpr UnaryFunction kExp2 = {"exp2", [](double x) { return math::exp2(x); },
                                 [](const Tensor&, const Tensor& y) { return y * kLn2; }};
constexpr UnaryFunction kExpm1 = {"expm1", [](double x) { return math::expm1(x); },
                                  [](const Tensor&, const Tensor& y) { return y + 1.0; }};
constexpr UnaryFunction kLog2 = {"log2", [](double x) { return math::log2(x); },
                                 [](const Tensor& x, const Tensor&) { return inverse(x * kLn2); }};
constexpr UnaryFunction kLog10 = {
    "log10", [](double x) { return std::log10(x); },
    [](const Tensor& x, const Tensor&) { return inverse(x * std::numbers::ln10); }};
// sin() and cos() of math.h are limited to angles below 2^45.
constexpr UnaryFunction kSin = {"sin", [](double x) { return math::full_range_sin(x); },
                                [](const Tensor& x, const Tensor&) { return cos(x); }};
constexpr UnaryFunction kCos = {"cos", [](double x) { return math::full_range_cos(x); },
                                [](const Tensor& x, const Tensor&) { return -sin(x); }};
constexpr UnaryFunction kTan = {
    "tan", [](double x) { return std::tan(x); },
    [](const Tensor&, const Tensor& y) { return ops::square(y) + 1.0; }};
constexpr UnaryFunction kArcsin = {
    "arcsin", [](double x) { return std::asin(x); },
    [](const Tensor& x, const Tensor&) { return ops::rsqrt(-ops::square(x) + 1.0); }};
constexpr UnaryFunction kArccos = {
    "arccos", [](double x) { return std::acos(x); },
    [](const Tensor& x, const Tensor&) { return -ops::rsqrt(-ops::square(x) + 1.0); }};
constexpr UnaryFunction kArctan = {
    "arctan", [](double x) { return std::atan(x); },
    [](const Tensor& x, const Tensor&) { return inverse(ops::square(x) + 1.0); }};
// sin() and cos() of math.h are limited to angles below 2^45.
constexpr UnaryFunction kSinh = {"sinh", [](double x) { return std::sinh(x); },
                                 [](const Tensor& x, const Tensor&) { return cosh(x); }};
constexpr UnaryFunction kCosh = {"cosh", [](double x) { return std::cosh(x); },
                                 [](const Tensor& x, const Tensor&) { return sinh(x); }};
constexpr UnaryFunction kArcsinh = {
    "arcsinh", [](double x) { return std::asinh(x); },
    [](const Tensor& x, const Tensor&) { return ops::rsqrt(ops::square(x) + 1.0); }};
constexpr UnaryFunction kArccosh = {
    "arccosh", [](double x) { return std::acosh(x); },
    [](const Tensor& x, const Tensor&) { return ops::rsqrt(ops::square(x) - 1.0); }};
constexpr UnaryFunction kArctanh = {
    "arctanh", [](double x) { return std::atanh(x); },
    [](const Tensor& x, const Tensor&) { return inverse(-ops::square(x) + 1.0); }};
// sin() and cos() of math.h are limited to angles below 2^45.
constexpr UnaryFunction kSinc = {
    "sinc", [](double x) { return x == 0 ? 1 : math::full_range_sin(kPi * x) / (kPi * x); },
    [](const Tensor& x, const Tensor& y) { return ops::divide_no_nan(cos(x * kPi) - y, x); }};
constexpr UnaryFunction kErfc = {"erfc", [](double x) { return std::erfc(x); },
                                 [](const Tensor& x, const Tensor&) {
                                   return ops::exp(-ops::square(x)) *
                                          (-2 * std::numbers::inv_sqrtpi);
                                 }};
constexpr UnaryFunction kErfinv = {"erfinv", inverse_erf, [](const Tensor&, const Tensor& y) {
                                     return ops::exp(ops::square(y)) *
                                            (0.5 / std::numbers::inv_sqrtpi);
                                   }};
constexpr UnaryFunction kI1 = {
    "i1", [](double x) { return bessel(x, 1); },
    [](const Tensor& x, const Tensor& y) { return i0(x) - ops::divide_no_nan(y, x); }};
constexpr UnaryFunction kI0 = {
    "i0", [](double x) { return bessel(x, 0); },
    [](const Tensor& x, const Tensor&) { return internal::apply(kI1, x); }};
constexpr UnaryFunction kCeil = {"ceil", [](double x) { return std::ceil(x); }};
constexpr UnaryFunction kTrunc = {"trunc", [](double x) { return std::trunc(x); }};
constexpr UnaryFunction kRound = {"round", [](double x) { return std::nearbyint(x); }};
constexpr UnaryFunction kAngle = {"angle", [](double x) { return x < 0 ? kPi : 0 * x; }};

int64_t integer_floor_divide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  const int64_t quotient = a / b;
  return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t out = 1;
  for (auto factor = static_cast<uint64_t>(base); exponent > 0; exponent /= 2, factor *= factor) {
    if (exponent % 2 == 1) out *= factor;
  }
  return static_cast<int64_t>(out);
}

constexpr BinaryFunction kFloorDivide = {
    "floor_divide", [](double a, double b) { return std::floor(a / b); }, integer_floor_divide};
// The slopes of the remainder y = a - n b, whose integer n is constant almost everywhere.
Tensor remainder_slope_a(const Tensor&, const Tensor&, const Tensor& y) {
  return ops::ones_like(y);
}
Tensor remainder_slope_b(const Tensor& a, const Tensor& b, const Tensor& y) {
  return internal::apply(kRound, (y - a) / b);
}
constexpr BinaryFunction kMod = {
    .name = "mod",
    .of_reals =
        [](double a, double b) {
          const double rest = std::fmod(a, b);
          return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
        },
    .of_integers = [](int64_t a,
                      int64_t b) { return b == 0 ? 0 : a - b * integer_floor_divide(a, b); },
    .slope_a = remainder_slope_a,
    .slope_b = remainder_slope_b};
constexpr BinaryFunction kFmod = {
    .name = "fmod",
    .of_reals = [](double a, double b) { return std::fmod(a, b); },
    .of_integers = [](int64_t a, int64_t b) { return b == 0 ? 0 : a % b; },
    .slope_a = remainder_slope_a,
    .slope_b = remainder_slope_b};
constexpr BinaryFunction kPower = {"power", nullptr, integer_power};
constexpr BinaryFunction kGcd = {"gcd", nullptr,
                                 [](int64_t a, int64_t b) { return std::gcd(a, b); }};
constexpr BinaryFunction kLcm = {"lcm", nullptr,
                                 [](int64_t a, int64_t b) { return std::lcm(a, b); }};
constexpr BinaryFunction kLogaddexp = {
    .name = "logaddexp",
    .of_reals =
        [](double a, double b) {
          if (a == b) return a + kLn2;  // also for infinities
          return std::fmax(a, b) + math::log1p(math::exp(-std::abs(a - b)));
        },
    .slope_a = [](const Tensor& a, const Tensor& b, const Tensor&) { return ops::sigmoid(a - b); },
    .slope_b = [](const Tensor& a, const Tensor& b, const Tensor&) { return ops::sigmoid(b - a); }};
constexpr BinaryFunction kArctan2 = {
    .name = "arctan2",
    .of_reals = [](double a, double b) { return std::atan2(a, b); },
    .slope_a = [](const Tensor& a, const Tensor& b,
                  const Tensor&) { return b / (ops::square(a) + ops::square(b)); },
    .slope_b = [](const Tensor& a, const Tensor& b,
                  const Tensor&) { return -a / (ops::square(a) + ops::square(b)); }};
constexpr BinaryFunction kHypot = {
    .name = "hypot",
    .of_reals = [](double a, double b) { return std::hypot(a, b); },
    .slope_a = [](const Tensor& a, const Tensor&, const Tensor& y) { return a / y; },
    .slope_b = [](const Tensor&, const Tensor& b, const Tensor& y) { return b / y; }};
constexpr BinaryFunction kHeaviside = {"heaviside", [](double a, double b) {
                                         return a == 0 ? b : a < 0 ? 0 : a > 0 ? 1 : a;
                                       }};
// The derivative of gammainc in x, the density of the gamma distribution of shape a.
constexpr BinaryFunction kGammaDensity = {
    .name = "gammainc",
    .of_reals =
        [](double a, double x) {
          int sign = 0;
          return math::exp((a - 1) * math::log(x) - x - ::lgamma_r(a, &sign));
        },
    .slope_b = [](const Tensor& a, const Tensor& x,
                  const Tensor& y) { return y * ((a - 1.0) / x - 1.0); }};
constexpr BinaryFunction kGammainc = {
    .name = "gammainc",
    .of_reals = lower_gamma,
    .slope_a = [](const Tensor&, const Tensor&, const Tensor&) -> Tensor {
      throw NotImplementedError(
          "gammainc: the gradient of x1 is not implemented; pass ops::stop_gradient(x1)");
    },
    .slope_b = [](const Tensor& a, const Tensor& x,
                  const Tensor&) { return internal::apply(kGammaDensity, a, x); }};
constexpr BinaryFunction kNextFloat = {"nextafter", [](double a, double b) -> double {
                                         return std::nextafter(static_cast<float>(a),
                                                               static_cast<float>(b));
                                       }};
constexpr BinaryFunction kNextDouble = {"nextafter",
                                        [](double a, double b) { return std::nextafter(a, b); }};

// Applies a function to the operands in their common dtype, int32 for bools and 8 bits.
Tensor arithmetic(const BinaryFunction& f, const Operand& a, const Operand& b) {
  const auto [p, q] = promoted(a, b);
  return internal::apply(f, countable(p), countable(q));
}
Tensor real_function(const BinaryFunction& f, const Operand& a, const Operand& b) {
  const auto [p, q] = promoted_floating(a, b);
  return internal::apply(f, p, q);
}

// Replaces NaN in a by b, and the other way round, before `choose`.
Tensor ignoring_nan(Tensor (*choose)(const Tensor&, const Tensor&), const Operand& x1,
                    const Operand& x2) {
  const auto [a, b] = promoted(x1, x2);
  if (!is_floating(a.dtype())) return choose(a, b);
  return ops::where(ops::is_nan(a), b, ops::where(ops::is_nan(b), a, choose(a, b)));
}

// Keras computes sums and products of bools as bools.
bool are_bools(const Tensor& x) { return x.dtype() == DType::kBool; }

}  // namespace

// ---- Arithmetic.

Tensor add(const Operand& x1, const Operand& x2) {
  const auto [a, b] = promoted(x1, x2);
  return are_bools(a) ? ops::logical_or(a, b) : ops::add(a, b);
}
Tensor subtract(const Operand& x1, const Operand& x2) {
  const auto [a, b] = promoted(x1, x2);
  return ops::subtract(a, b);
}
Tensor multiply(const Operand& x1, const Operand& x2) {
  const auto [a, b] = promoted(x1, x2);
  return are_bools(a) ? ops::logical_and(a, b) : ops::multiply(a, b);
}
Tensor divide(const Operand& x1, const Operand& x2) {
  const auto [a, b] = promoted_floating(x1, x2);
  return ops::divide(a, b);
}
Tensor true_divide(const Operand& x1, const Operand& x2) { return divide(x1, x2); }
Tensor divide_no_nan(const Operand& x1, const Operand& x2) {
  const auto [a, b] = promoted_floating(x1, x2);
  return ops::divide_no_nan(a, b);
}
Tensor floor_divide(const Operand& x1, const Operand& x2) {
  return arithmetic(kFloorDivide, x1, x2);
}
Tensor mod(const Operand& x1, const Operand& x2) { return arithmetic(kMod, x1, x2); }
Tensor fmod(const Operand& x1, const Operand& x2) { return arithmetic(kFmod, x1, x2); }
Tensor power(const Operand& x1, const Operand& x2) {
  const auto [a, b] = promoted(x1, x2);
  return is_floating(a.dtype()) ? ops::pow(a, b) : arithmetic(kPower, x1, x2);
}
Tensor negative(const Tensor& x) { return ops::negative(x); }
Tensor reciprocal(const Tensor& x) { return internal::apply(kReciprocal, x); }
Tensor abs(const Tensor& x) { return are_bools(x) ? x : ops::abs(x); }
Tensor absolute(const Tensor& x) { return abs(x); }
Tensor fabs(const Tensor& x) { return ops::abs(floating(x)); }
Tensor sign(const Tensor& x) { return ops::sign(countable(x)); }
Tensor square(const Tensor& x) { return ops::square(countable(x)); }
Tensor maximum(const Operand& x1, const Operand& x2) {
  const auto [a, b] = promoted(x1, x2);
  return are_bools(a) ? ops::logical_or(a, b) : ops::maximum(a, b);
}
Tensor minimum(const Operand& x1, const Operand& x2) {
  const auto [a, b] = promoted(x1, x2);
  return are_bools(a) ? ops::logical_and(a, b) : ops::minimum(a, b);
}
Tensor fmax(const Operand& x1, const Operand& x2) { return ignoring_nan(ops::maximum, x1, x2); }
Tensor fmin(const Operand& x1, const Operand& x2) { return ignoring_nan(ops::minimum, x1, x2); }
Tensor clip(const Tensor& x, const Operand& x_min, const Operand& x_max) {
  const Tensor in = countable(x);
  if (is_floating(in.dtype()) && x_min.is_number() && x_max.is_number()) {
    const auto bound = [](const Operand& b) { return internal::doubles_of(b.tensor())[0]; };
    return ops::clip_by_value(in, bound(x_min), bound(x_max));
  }
  return minimum(maximum(in, x_min), x_max);
}
Tensor gcd(const Operand& x1, const Operand& x2) { return arithmetic(kGcd, x1, x2); }
Tensor lcm(const Operand& x1, const Operand& x2) { return arithmetic(kLcm, x1, x2); }

// ---- Exponentials and logarithms.

Tensor sqrt(const Tensor& x) { return ops::sqrt(floating(x)); }
Tensor rsqrt(const Tensor& x) { return ops::rsqrt(floating(x)); }
Tensor cbrt(const Tensor& x) { return internal::apply(kCbrt, x); }
Tensor exp(const Tensor& x) { return ops::exp(floating(x)); }
Tensor exp2(const Tensor& x) { return internal::apply(kExp2, x); }
Tensor expm1(const Tensor& x) { return internal::apply(kExpm1, x); }
Tensor log(const Tensor& x) { return ops::log(floating(x)); }
Tensor log10(const Tensor& x) { return internal::apply(kLog10, x); }
Tensor log1p(const Tensor& x) { return ops::log1p(floating(x)); }
Tensor log2(const Tensor& x) { return internal::apply(kLog2, x); }
Tensor logaddexp(const Operand& x1, const Operand& x2) { return real_function(kLogaddexp, x1, x2); }
Tensor logaddexp2(const Operand& x1, const Operand& x2) {
  const auto [a, b] = promoted_floating(x1, x2);
  return internal::apply(kLogaddexp, a * kLn2, b * kLn2) / kLn2;
}
Tensor ldexp(const Operand& x1, const Operand& x2) {
  const auto [a, b] = promoted_floating(x1, x2);
  return a * exp2(b);
}

// ---- Trigonometric and hyperbolic functions.

Tensor sin(const Tensor& x) { return internal::apply(kSin, x); }
Tensor cos(const Tensor& x) { return internal::apply(kCos, x); }
Tensor tan(const Tensor& x) { return internal::apply(kTan, x); }
Tensor arcsin(const Tensor& x) { return internal::apply(kArcsin, x); }
Tensor arccos(const Tensor& x) { return internal::apply(kArccos, x); }
Tensor arctan(const Tensor& x) { return internal::apply(kArctan, x); }
Tensor arctan2(const Operand& x1, const Operand& x2) { return real_function(kArctan2, x1, x2); }
Tensor sinh(const Tensor& x) { return internal::apply(kSinh, x); }
Tensor cosh(const Tensor& x) { return internal::apply(kCosh, x); }
Tensor tanh(const Tensor& x) { return ops::tanh(floating(x)); }
Tensor arcsinh(const Tensor& x) { return internal::apply(kArcsinh, x); }
Tensor arccosh(const Tensor& x) { return internal::apply(kArccosh, x); }
Tensor arctanh(const Tensor& x) { return internal::apply(kArctanh, x); }
Tensor sinc(const Tensor& x) { return internal::apply(kSinc, x); }
Tensor hypot(const Operand& x1, const Operand& x2) { return real_function(kHypot, x1, x2); }
Tensor deg2rad(const Tensor& x) { return floating(x) * (kPi / 180); }
Tensor rad2deg(const Tensor& x) { return floating(x) * (180 / kPi); }

// ---- Special functions.

Tensor erf(const Tensor& x) { return ops::erf(floating(x)); }
Tensor erfc(const Tensor& x) { return internal::apply(kErfc, x); }
Tensor erfinv(const Tensor& x) { return internal::apply(kErfinv, x); }
Tensor i0(const Tensor& x) { return internal::apply(kI0, x); }
Tensor gammainc(const Operand& x1, const Operand& x2) { return real_function(kGammainc, x1, x2); }
Tensor heaviside(const Operand& x1, const Operand& x2) { return real_function(kHeaviside, x1, x2); }
Tensor nextafter(const Operand& x1, const Operand& x2) {
  const auto [a, b] = promoted_floating(x1, x2);
  return internal::apply(a.dtype() == DType::kFloat32 ? kNextFloat : kNextDouble, a, b);
}

// ---- Rounding.

Tensor floor(const Tensor& x) { return ops::floor(floating(x)); }
Tensor ceil(const Tensor& x) { return internal::apply(kCeil, x); }
Tensor trunc(const Tensor& x) {
  return is_floating(x.dtype()) ? internal::apply(kTrunc, x) : countable(x);
}
Tensor round(const Tensor& x, int decimals) {
  if (!is_floating(x.dtype()) && decimals >= 0) return countable(x);
  if (decimals == 0) return internal::apply(kRound, x);
  const double unit = std::pow(10.0, std::abs(decimals));
  const Tensor in = floating(x);
  const Tensor out = decimals > 0 ? internal::apply(kRound, in * unit) / unit
                                  : internal::apply(kRound, in / unit) * unit;
  return ops::cast(out, x.dtype());
}
Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  if (!is_floating(x.dtype())) return x;
  const bool is_float = x.dtype() == DType::kFloat32;
  const double greatest =
      is_float ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  const auto number = [&](double value) { return Tensor::scalar(value).cast(x.dtype()); };
  const double infinity = std::numeric_limits<double>::infinity();
  Tensor out = ops::where(ops::is_nan(x), number(nan), x);
  out = ops::where(ops::equal(x, number(infinity)), number(posinf.value_or(greatest)), out);
  return ops::where(ops::equal(x, number(-infinity)), number(neginf.value_or(-greatest)), out);
}

// ---- Functions of complex numbers.

Tensor real(const Tensor& x) { return x; }
Tensor imag(const Tensor& x) { return ops::zeros_like(x); }
Tensor conj(const Tensor& x) { return x; }
Tensor conjugate(const Tensor& x) { return x; }
Tensor angle(const Tensor& x) { return internal::apply(kAngle, x); }

}  // namespace keel::keras_ops
