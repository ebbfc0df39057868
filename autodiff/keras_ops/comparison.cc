#include <keel/autodiff/keras_ops/comparison.h>

#include <cmath>
#include <set>

#include <keel/autodiff/keras_ops/internal/function_op.h>
#include <keel/autodiff/ops.h>

namespace keel::keras_ops {
namespace {

using internal::BinaryFunction;

using CoreComparison = Tensor (*)(const Tensor&, const Tensor&);

// Compares bools and small integers as int32.
Tensor compared(CoreComparison compare, const Operand& x1, const Operand& x2) {
  if (!x1.is_number() && x1.tensor().dtype() == DType::kString) {
    return compare(x1.tensor(), x2.tensor());
  }
  const auto [a, b] = internal::promoted(x1, x2);
  return compare(internal::countable(a), internal::countable(b));
}

Tensor truth_of(const Tensor& x) {
  return x.dtype() == DType::kBool ? x : ops::cast(x, DType::kBool);
}

// A shift of all bits or more gives 0, or -1 for negative numbers to the right.
constexpr BinaryFunction kAnd = {"bitwise_and", nullptr,
                                 [](int64_t a, int64_t b) { return a & b; }};
constexpr BinaryFunction kOr = {"bitwise_or", nullptr, [](int64_t a, int64_t b) { return a | b; }};
constexpr BinaryFunction kXor = {"bitwise_xor", nullptr,
                                 [](int64_t a, int64_t b) { return a ^ b; }};
constexpr BinaryFunction kLeft = {
    "bitwise_left_shift", nullptr, [](int64_t a, int64_t b) {
      return b < 0 || b > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
    }};
constexpr BinaryFunction kRight = {"bitwise_right_shift", nullptr, [](int64_t a, int64_t b) {
                                     return a >> (b < 0 || b > 63 ? 63 : b);
                                   }};

Tensor bitwise(const BinaryFunction& f, const Operand& x, const Operand& y) {
  const auto [a, b] = internal::promoted(x, y);
  return internal::apply(f, a, b);
}

}  // namespace

// ---- Comparisons.

Tensor equal(const Operand& x1, const Operand& x2) { return compared(ops::equal, x1, x2); }
Tensor not_equal(const Operand& x1, const Operand& x2) { return compared(ops::not_equal, x1, x2); }
Tensor greater(const Operand& x1, const Operand& x2) { return compared(ops::greater, x1, x2); }
Tensor greater_equal(const Operand& x1, const Operand& x2) {
  return compared(ops::greater_equal, x1, x2);
}
Tensor less(const Operand& x1, const Operand& x2) { return compared(ops::less, x1, x2); }
Tensor less_equal(const Operand& x1, const Operand& x2) {
  return compared(ops::less_equal, x1, x2);
}

Tensor isclose(const Operand& x1, const Operand& x2, double rtol, double atol, bool equal_nan) {
  const auto [a, b] = internal::promoted_floating(x1, x2);
  const Tensor margin = ops::abs(b) * rtol + atol;
  const Tensor near = ops::logical_and(ops::less_equal(ops::abs(a - b), margin), isfinite(b));
  const Tensor close = ops::logical_or(near, ops::equal(a, b));
  if (!equal_nan) return close;
  return ops::logical_or(close, ops::logical_and(ops::is_nan(a), ops::is_nan(b)));
}
Tensor allclose(const Operand& x1, const Operand& x2, double rtol, double atol, bool equal_nan) {
  return all(isclose(x1, x2, rtol, atol, equal_nan));
}
Tensor isin(const Operand& x1, const Operand& x2, bool, bool invert) {
  const auto [a, b] = internal::promoted(x1, x2);
  internal::FunctionOp op = {.name = "isin",
                             .outputs = {{.shape = a.shape(), .dtype = DType::kBool}}};
  op.compute = [invert](std::span<const Tensor> in) {
    const std::vector<double> values = internal::doubles_of(in[1]);
    const std::set<double> known(values.begin(), values.end());
    std::vector<uint8_t> found;
    for (const double v : internal::doubles_of(in[0])) found.push_back(known.contains(v) != invert);
    return std::vector<Tensor>{Tensor::from(found, in[0].shape()).cast(DType::kBool)};
  };
  return internal::call1(std::move(op), {a, b});
}

// ---- Properties of numbers.

Tensor isfinite(const Tensor& x) {
  return internal::test("isfinite", [](double v) { return std::isfinite(v); }, x);
}
Tensor isinf(const Tensor& x) {
  return internal::test("isinf", [](double v) { return std::isinf(v); }, x);
}
Tensor isnan(const Tensor& x) {
  return internal::test("isnan", [](double v) { return std::isnan(v); }, x);
}
Tensor isneginf(const Tensor& x) {
  return internal::test("isneginf", [](double v) { return std::isinf(v) && v < 0; }, x);
}
Tensor isposinf(const Tensor& x) {
  return internal::test("isposinf", [](double v) { return std::isinf(v) && v > 0; }, x);
}
Tensor isreal(const Tensor& x) {
  return internal::test("isreal", [](double) { return true; }, x);
}
Tensor signbit(const Tensor& x) {
  return internal::test("signbit", [](double v) { return std::signbit(v); }, x);
}

// ---- Logical functions.

Tensor logical_and(const Operand& x1, const Operand& x2) {
  return ops::logical_and(truth_of(x1.tensor()), truth_of(x2.tensor()));
}
Tensor logical_or(const Operand& x1, const Operand& x2) {
  return ops::logical_or(truth_of(x1.tensor()), truth_of(x2.tensor()));
}
Tensor logical_xor(const Operand& x1, const Operand& x2) {
  return ops::not_equal(truth_of(x1.tensor()), truth_of(x2.tensor()));
}
Tensor logical_not(const Tensor& x) { return ops::logical_not(truth_of(x)); }

Tensor all(const Tensor& x, const Axes& axis, bool keepdims) {
  return ops::logical_not(any(logical_not(x), axis, keepdims));
}
Tensor any(const Tensor& x, const Axes& axis, bool keepdims) {
  const std::vector<int> axes = axis.of(x.rank());
  if (axes.empty()) return truth_of(x);
  const Tensor count = ops::sum(ops::cast(truth_of(x), DType::kInt32), axes, keepdims);
  return ops::cast(count, DType::kBool);
}

// ---- Bitwise functions.

Tensor bitwise_and(const Operand& x, const Operand& y) { return bitwise(kAnd, x, y); }
Tensor bitwise_or(const Operand& x, const Operand& y) { return bitwise(kOr, x, y); }
Tensor bitwise_xor(const Operand& x, const Operand& y) { return bitwise(kXor, x, y); }
Tensor bitwise_not(const Tensor& x) {
  if (x.dtype() == DType::kBool) return ops::logical_not(x);
  return bitwise_xor(x, Operand(-1));
}
Tensor bitwise_invert(const Tensor& x) { return bitwise_not(x); }
Tensor bitwise_left_shift(const Operand& x, const Operand& y) { return bitwise(kLeft, x, y); }
Tensor bitwise_right_shift(const Operand& x, const Operand& y) { return bitwise(kRight, x, y); }
Tensor left_shift(const Operand& x, const Operand& y) { return bitwise_left_shift(x, y); }
Tensor right_shift(const Operand& x, const Operand& y) { return bitwise_right_shift(x, y); }

}  // namespace keel::keras_ops
