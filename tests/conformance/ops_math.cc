#include "tests/conformance/ops_arguments.h"

namespace keel::conformance {
namespace {

namespace K = keras_ops;
using K::Operand;

OpAdapter unary(Tensor (*f)(const Tensor&)) {
  return [f](OpArguments& a) -> std::vector<Tensor> { return {f(a.tensor("x"))}; };
}
OpAdapter binary(Tensor (*f)(const Operand&, const Operand&), const char* first = "x1",
                 const char* second = "x2") {
  return [=](OpArguments& a) -> std::vector<Tensor> {
    return {f(a.operand(first), a.operand(second))};
  };
}
OpAdapter bitwise(Tensor (*f)(const Operand&, const Operand&)) { return binary(f, "x", "y"); }
OpAdapter single(Tensor (*f)(OpArguments&)) {
  return [f](OpArguments& a) -> std::vector<Tensor> { return {f(a)}; };
}

OpAdapters binary_adapters() {
  return {{"add", binary(K::add)},
          {"subtract", binary(K::subtract)},
          {"multiply", binary(K::multiply)},
          {"divide", binary(K::divide)},
          {"true_divide", binary(K::true_divide)},
          {"divide_no_nan", binary(K::divide_no_nan)},
          {"floor_divide", binary(K::floor_divide)},
          {"mod", binary(K::mod)},
          {"fmod", binary(K::fmod)},
          {"power", binary(K::power)},
          {"maximum", binary(K::maximum)},
          {"minimum", binary(K::minimum)},
          {"fmax", binary(K::fmax)},
          {"fmin", binary(K::fmin)},
          {"gcd", binary(K::gcd)},
          {"lcm", binary(K::lcm)},
          {"logaddexp", binary(K::logaddexp)},
          {"logaddexp2", binary(K::logaddexp2)},
          {"ldexp", binary(K::ldexp)},
          {"arctan2", binary(K::arctan2)},
          {"hypot", binary(K::hypot)},
          {"gammainc", binary(K::gammainc)},
          {"heaviside", binary(K::heaviside)},
          {"nextafter", binary(K::nextafter)},
          {"equal", binary(K::equal)},
          {"not_equal", binary(K::not_equal)},
          {"greater", binary(K::greater)},
          {"greater_equal", binary(K::greater_equal)},
          {"less", binary(K::less)},
          {"less_equal", binary(K::less_equal)},
          {"logical_and", binary(K::logical_and)},
          {"logical_or", binary(K::logical_or)},
          {"logical_xor", binary(K::logical_xor)},
          {"bitwise_and", bitwise(K::bitwise_and)},
          {"bitwise_or", bitwise(K::bitwise_or)},
          {"bitwise_xor", bitwise(K::bitwise_xor)},
          {"bitwise_left_shift", bitwise(K::bitwise_left_shift)},
          {"bitwise_right_shift", bitwise(K::bitwise_right_shift)},
          {"left_shift", bitwise(K::left_shift)},
          {"right_shift", bitwise(K::right_shift)}};
}

OpAdapters unary_adapters() {
  return {{"negative", unary(K::negative)},
          {"reciprocal", unary(K::reciprocal)},
          {"abs", unary(K::abs)},
          {"absolute", unary(K::absolute)},
          {"fabs", unary(K::fabs)},
          {"sign", unary(K::sign)},
          {"square", unary(K::square)},
          {"sqrt", unary(K::sqrt)},
          {"rsqrt", unary(K::rsqrt)},
          {"cbrt", unary(K::cbrt)},
          {"exp", unary(K::exp)},
          {"exp2", unary(K::exp2)},
          {"expm1", unary(K::expm1)},
          {"log", unary(K::log)},
          {"log10", unary(K::log10)},
          {"log1p", unary(K::log1p)},
          {"log2", unary(K::log2)},
          {"sin", unary(K::sin)},
          {"cos", unary(K::cos)},
          {"tan", unary(K::tan)},
          {"arcsin", unary(K::arcsin)},
          {"arccos", unary(K::arccos)},
          {"arctan", unary(K::arctan)},
          {"sinh", unary(K::sinh)},
          {"cosh", unary(K::cosh)},
          {"tanh", unary(K::tanh)},
          {"arcsinh", unary(K::arcsinh)},
          {"arccosh", unary(K::arccosh)},
          {"arctanh", unary(K::arctanh)},
          {"sinc", unary(K::sinc)},
          {"deg2rad", unary(K::deg2rad)},
          {"rad2deg", unary(K::rad2deg)},
          {"erf", unary(K::erf)},
          {"erfc", unary(K::erfc)},
          {"erfinv", unary(K::erfinv)},
          {"i0", unary(K::i0)},
          {"floor", unary(K::floor)},
          {"ceil", unary(K::ceil)},
          {"trunc", unary(K::trunc)},
          {"real", unary(K::real)},
          {"imag", unary(K::imag)},
          {"conj", unary(K::conj)},
          {"conjugate", unary(K::conjugate)},
          {"angle", unary(K::angle)},
          {"isfinite", unary(K::isfinite)},
          {"isinf", unary(K::isinf)},
          {"isnan", unary(K::isnan)},
          {"isneginf", unary(K::isneginf)},
          {"isposinf", unary(K::isposinf)},
          {"isreal", unary(K::isreal)},
          {"signbit", unary(K::signbit)},
          {"logical_not", unary(K::logical_not)},
          {"bitwise_not", unary(K::bitwise_not)},
          {"bitwise_invert", unary(K::bitwise_invert)},
          {"copy", unary(K::copy)}};
}

OpAdapters other_adapters() {
  return {{"round", single([](OpArguments& a) {
             return K::round(a.tensor("x"), static_cast<int>(a.integer("decimals", 0)));
           })},
          {"clip", single([](OpArguments& a) {
             return K::clip(a.tensor("x"), a.operand("x_min"), a.operand("x_max"));
           })},
          {"nan_to_num", single([](OpArguments& a) {
             return K::nan_to_num(a.tensor("x"), a.number("nan", 0), a.maybe_number("posinf"),
                                  a.maybe_number("neginf"));
           })},
          {"isclose", single([](OpArguments& a) {
             return K::isclose(a.operand("x1"), a.operand("x2"), a.number("rtol", 1e-5),
                               a.number("atol", 1e-8), a.boolean("equal_nan", false));
           })},
          {"allclose", single([](OpArguments& a) {
             return K::allclose(a.operand("x1"), a.operand("x2"), a.number("rtol", 1e-5),
                                a.number("atol", 1e-8), a.boolean("equal_nan", false));
           })},
          {"isin", single([](OpArguments& a) {
             return K::isin(a.operand("x1"), a.operand("x2"), a.boolean("assume_unique", false),
                            a.boolean("invert", false));
           })}};
}

}  // namespace

OpAdapters math_adapters() {
  OpAdapters out = binary_adapters();
  out.merge(unary_adapters());
  out.merge(other_adapters());
  return out;
}

}  // namespace keel::conformance
