// Tests autodiff/ops/comparison.cc, elementwise.cc, elementwise_internal.cc, ops_internal.cc,
// reduce.cc and shape.cc.
#include <keel/autodiff/ops.h>

#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include <keel/autodiff/tape.h>

#include "tests/autodiff/small_tensors.h"
#include "tests/support/errors.h"

namespace keel::ops_test {

using namespace testing_support;  // NOLINT: helpers of this folder's tests

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// ---- Elementwise.

TEST(ElementwiseTest, BroadcastsAsNumpyDoes) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  expect_floats(x + row({10, 20, 30}), {2, 3}, {11, 22, 33, 14, 25, 36});
  expect_floats(row({10, 20, 30}) - x, {2, 3}, {9, 18, 27, 6, 15, 24});
  expect_floats(x * floats({10, 100}, {2, 1}), {2, 3}, {10, 20, 30, 400, 500, 600});
  expect_floats(x / Tensor::scalar(2.0F), {2, 3}, {.5, 1, 1.5, 2, 2.5, 3});
  expect_floats(floats({1, 2}, {2, 1}) + row({10, 20, 30}), {2, 3}, {11, 21, 31, 12, 22, 32});
}

TEST(ElementwiseTest, BroadcastsInTheMiddleOfAShape) {
  const Tensor a = floats({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2});
  const Tensor b = floats({10, 20, 30, 40}, {2, 1, 2});
  expect_floats(a + b, {2, 2, 2}, {11, 22, 13, 24, 35, 46, 37, 48});
}

TEST(ElementwiseTest, BroadcastsLongRowsCutIntoPieces) {
  const int64_t n = 40000;
  const Tensor y = Tensor::full<float>({3, n}, 1) + floats({1, 2, 3}, {3, 1});
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t i : {int64_t{0}, int64_t{16384}, n - 1}) {
      EXPECT_EQ(y.data<float>()[r * n + i], static_cast<float>(r + 2));
    }
  }
}

TEST(ElementwiseTest, RejectsShapesThatDoNotBroadcast) {
  const std::string message =
      message_of<ValueError>([] { ops::add(Tensor::zeros({2, 3}), Tensor::zeros({2})); });
  EXPECT_EQ(message,
            "add: shapes (2, 3) and (2,) cannot be broadcast to a common shape; each dimension "
            "must be equal or 1");
}

TEST(ElementwiseTest, RejectsOperandsOfTwoDtypes) {
  const Tensor x = Tensor::zeros({2}), y = Tensor::zeros({2}, DType::kFloat64);
  EXPECT_EQ(message_of<TypeError>([&] { ops::multiply(x, y); }),
            "multiply: operands must have the same dtype, received float32 and float64");
  EXPECT_THROW(ops::greater(x, y), TypeError);
  EXPECT_THROW(ops::where(Tensor::zeros({2}, DType::kBool), x, y), TypeError);
}

TEST(ElementwiseTest, RejectsDtypesWithoutTheArithmetic) {
  EXPECT_THROW(ops::exp(ids({1})), TypeError);
  EXPECT_THROW(ops::divide(ids({1}), ids({1})), TypeError);
  EXPECT_THROW(ops::add(Tensor::zeros({1}, DType::kBool), Tensor::zeros({1}, DType::kBool)),
               TypeError);
  EXPECT_THROW(ops::mean(ids({1})), TypeError);
}

TEST(ElementwiseTest, ComputesWithIntegers) {
  EXPECT_EQ((ids({1, -2}) * ids({3, 4})).to_vector<int64_t>(), (std::vector<int64_t>{3, -8}));
  EXPECT_EQ(ops::abs(ids({-3, 2})).to_vector<int64_t>(), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(ops::scale(ids({-3, 2}), 2).to_vector<int64_t>(), (std::vector<int64_t>{-6, 4}));
  EXPECT_EQ(ops::shift(ids({-3, 2}), 1).to_vector<int64_t>(), (std::vector<int64_t>{-2, 3}));
  EXPECT_EQ(ops::sum(ids({-3, 2, 9})).item<int64_t>(), 8);
}

TEST(ElementwiseTest, DivideNoNanReturnsZeroForZeroDivisors) {
  const Tensor a = row({1, 2}), b = row({0, 4});
  expect_floats(ops::divide_no_nan(a, b), {2}, {0, .5});
  EXPECT_EQ(ops::divide(a, b).data<float>()[0], kInfinity);
}

TEST(ElementwiseTest, ComputesSoftplusAndSigmoidWithoutOverflow) {
  const Tensor x = row({-1000, 0, 1000});
  expect_floats(ops::softplus(x), {3}, {0, std::log(2.0F), 1000});
  expect_floats(ops::sigmoid(x), {3}, {0, .5, 1});
}

TEST(ElementwiseTest, KeepsNaN) {
  const Tensor x = row({kNaN});
  EXPECT_TRUE(std::isnan(ops::relu(x).item<float>()));
  EXPECT_TRUE(std::isnan(ops::maximum(x, row({1})).item<float>()));
  EXPECT_TRUE(std::isnan(ops::minimum(row({1}), x).item<float>()));
  EXPECT_TRUE(std::isnan(ops::clip_by_value(x, 0, 1).item<float>()));
  EXPECT_TRUE(std::isnan(ops::max(row({1, kNaN, 2})).item<float>()));
  EXPECT_TRUE(std::isnan(ops::min(row({1, kNaN, 2})).item<float>()));
}

TEST(ElementwiseTest, ComputesFloorAndSign) {
  expect_floats(ops::floor(row({-1.5, 1.5})), {2}, {-2, 1});
  expect_floats(ops::sign(row({-1.5, 0, 2})), {3}, {-1, 0, 1});
}

TEST(ElementwiseTest, GradientsAtKinksAreTheDocumentedOnes) {
  const auto gradient = [](const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
    GradientTape tape;
    tape.watch(x);
    return tape.input_gradient(f(x), {x})[0].dense();
  };
  expect_floats(gradient(row({-1, 0, 1}), ops::relu), {3}, {0, 0, 1});
  expect_floats(gradient(row({-1, 0, 1}), ops::abs), {3}, {-1, 0, 1});
  expect_floats(gradient(row({-2, -1, 0, 1, 2}),
                         [](const Tensor& x) { return ops::clip_by_value(x, -1, 1); }),
                {5}, {0, 1, 1, 1, 0});
  expect_floats(
      gradient(row({0, 1, 2}), [](const Tensor& x) { return ops::maximum(x, row({1, 1, 1})); }),
      {3}, {0, .5, 1});
  expect_floats(
      gradient(row({0, 1, 2}), [](const Tensor& x) { return ops::minimum(row({1, 1, 1}), x); }),
      {3}, {1, .5, 0});
  expect_floats(gradient(row({3, 5, 5}), [](const Tensor& x) { return ops::max(x); }), {3},
                {0, .5, .5});
  expect_floats(gradient(row({0, 2}), [](const Tensor& x) { return ops::pow(x, row({0, 3})); }),
                {2}, {0, 12});
  expect_floats(
      gradient(row({3, 4}), [](const Tensor& b) { return ops::divide_no_nan(row({1, 1}), b * 0); }),
      {2}, {0, 0});
}

TEST(ElementwiseTest, ClipRejectsAnEmptyInterval) {
  EXPECT_THROW(ops::clip_by_value(row({1}), 2, 1), ValueError);
}

TEST(ElementwiseTest, CastsAsCppDoes) {
  EXPECT_EQ(ops::cast(row({-1.7F, 2.5F}), DType::kInt32).to_vector<int32_t>(),
            (std::vector<int32_t>{-1, 2}));
  expect_floats(ops::cast(Tensor::from<bool>({true, false}, {2}), DType::kFloat32), {2}, {1, 0});
  EXPECT_THROW(ops::cast(row({1}), DType::kString), TypeError);
}

// ---- Comparisons and selection.

TEST(ComparisonTest, ComparesWithBroadcasting) {
  const Tensor x = row({1, 2, 3}), two = Tensor::scalar(2.0F);
  expect_bools(ops::equal(x, two), {false, true, false});
  expect_bools(ops::not_equal(x, two), {true, false, true});
  expect_bools(ops::greater(x, two), {false, false, true});
  expect_bools(ops::greater_equal(x, two), {false, true, true});
  expect_bools(ops::less(x, two), {true, false, false});
  expect_bools(ops::less_equal(x, two), {true, true, false});
  expect_bools(ops::logical_not(ops::less(x, two)), {false, true, true});
  expect_bools(ops::logical_and(ops::less(x, two), ops::equal(two, two)), {true, false, false});
  expect_bools(ops::logical_or(ops::less(x, two), ops::equal(x, two)), {true, true, false});
  expect_bools(ops::is_nan(row({1, kNaN, kInfinity})), {false, true, false});
}

TEST(ComparisonTest, ComparesStringsForEqualityOnly) {
  const Tensor x = Tensor::from<std::string>({"a", "b"}, {2});
  expect_bools(ops::equal(x, Tensor::scalar<std::string>("b")), {false, true});
  EXPECT_THROW(ops::less(x, x), TypeError);
}

TEST(ComparisonTest, RejectsConditionsThatAreNotBool) {
  EXPECT_THROW(ops::where(row({1}), row({1}), row({1})), TypeError);
  EXPECT_THROW(ops::logical_not(row({1})), TypeError);
  EXPECT_THROW(ops::logical_and(ops::equal(row({1}), row({1})), row({1})), TypeError);
  EXPECT_THROW(ops::logical_or(row({1}), ops::equal(row({1}), row({1}))), TypeError);
  EXPECT_THROW(ops::is_nan(ids({1})), TypeError);
}

TEST(ComparisonTest, ChoosesWithBroadcasting) {
  const Tensor condition = Tensor::from<bool>({true, false}, {2, 1});
  expect_floats(ops::where(condition, row({1, 2, 3}), Tensor::scalar(0.0F)), {2, 3},
                {1, 2, 3, 0, 0, 0});
}

TEST(ComparisonTest, MakesConstantsOfAShape) {
  expect_floats(ops::ones_like(row({5, 6})), {2}, {1, 1});
  expect_floats(ops::zeros_like(row({5, 6})), {2}, {0, 0});
  EXPECT_THROW(ops::ones_like(Tensor::zeros({1}, DType::kString)), TypeError);
  EXPECT_TRUE(ops::ones_like(Tensor::symbolic({.shape = {kUnknown, 2}})).is_symbolic());
}

// ---- Reductions.

TEST(ReduceTest, ReducesAnyAxes) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2});
  expect_floats(ops::sum(x), {}, {36});
  expect_floats(ops::sum(x, {0}), {2, 2}, {6, 8, 10, 12});
  expect_floats(ops::sum(x, {1}), {2, 2}, {4, 6, 12, 14});
  expect_floats(ops::sum(x, {-1}, true), {2, 2, 1}, {3, 7, 11, 15});
  expect_floats(ops::sum(x, {0, 2}), {2}, {14, 22});
  expect_floats(ops::mean(x, {2, 1}), {2}, {2.5, 6.5});
  expect_floats(ops::max(x, {0, 2}, true), {1, 2, 1}, {6, 8});
  expect_floats(ops::min(x, {1}), {2, 2}, {1, 2, 5, 6});
}

TEST(ReduceTest, RejectsInvalidAxes) {
  EXPECT_EQ(message_of<ValueError>([] { ops::sum(Tensor::zeros({2}), {1}); }),
            "sum: axis 1 is out of range for shape (2,); pass an axis in [-rank, rank)");
  EXPECT_THROW(ops::mean(Tensor::zeros({2, 2}), {0, -2}), ValueError);
}

TEST(ReduceTest, SumsAMillionEqualFloatsAccurately) {
  const int64_t n = 1000000;
  const Tensor x = Tensor::full<float>({n}, 0.1F);
  EXPECT_NEAR(ops::sum(x).item<float>(), 1e5, 1);
  EXPECT_NEAR(ops::mean(x).item<float>(), 0.1, 1e-6);
  const Tensor columns = ops::sum(x.reshaped({n / 4, 4}), {0});
  for (float v : columns.data<float>()) EXPECT_NEAR(v, 2.5e4, 0.25);
}

TEST(ReduceTest, HandlesManyRowsAndWideStrips) {
  const int64_t rows = 700, columns = 2100;
  const Tensor ones = Tensor::full<float>({rows, columns}, 1);
  EXPECT_EQ(ops::sum(ones, {0}).to_vector<float>(), std::vector<float>(columns, rows));
  EXPECT_EQ(ops::sum(ones, {1}).to_vector<float>(), std::vector<float>(rows, columns));
  const Tensor x = noise({rows, columns});
  const Tensor greatest = ops::max(x, {0});
  float expected = -2;
  for (int64_t r = 0; r < rows; ++r) {
    expected = std::max(expected, x.data<float>()[r * columns + 2050]);
  }
  EXPECT_EQ(greatest.data<float>()[2050], expected);
}

TEST(ReduceTest, ReducesNothingToNeutralElements) {
  const Tensor none = Tensor::zeros({0, 3});
  expect_floats(ops::sum(none, {0}), {3}, {0, 0, 0});
  expect_floats(ops::sum(none), {}, {0});
  EXPECT_TRUE(std::isnan(ops::mean(none).item<float>()));
  EXPECT_EQ(ops::sum(none, {1}).shape(), Shape({0}));
  EXPECT_EQ(ops::mean(none, {1}).shape(), Shape({0}));
  EXPECT_THROW(ops::max(none), ValueError);
  EXPECT_EQ(ops::max(none, {1}).shape(), Shape({0}));
}

TEST(ReduceTest, ArgmaxReturnsTheFirstMaximum) {
  const Tensor x = floats({1, 5, 5, 7, 2, 7}, {2, 3});
  EXPECT_EQ(ops::argmax(x).to_vector<int64_t>(), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(ops::argmax(x, 0).to_vector<int64_t>(), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_THROW(ops::argmax(x, 2), ValueError);
  EXPECT_THROW(ops::argmax(Tensor::zeros({2, 0})), ValueError);
}

TEST(ReduceTest, SumsBackToAShape) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  expect_floats(ops::sum_to(x, {3}), {3}, {5, 7, 9});
  expect_floats(ops::sum_to(x, {2, 1}), {2, 1}, {6, 15});
  expect_floats(ops::sum_to(x, {}), {}, {21});
  expect_floats(ops::sum_to(x, {2, 3}), {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(message_of<ValueError>([&] { ops::sum_to(x, {2}); }),
            "sum_to: shapes (2,) and (2, 3) cannot be broadcast to a common shape; each dimension "
            "must be equal or 1");
  EXPECT_THROW(ops::sum_to(x, {4, 2, 3}), ValueError);
}

// ---- Shapes.

TEST(ShapeOpsTest, ReshapesWithoutCopying) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor y = ops::reshape(x, {3, kUnknown});
  EXPECT_EQ(y.shape(), Shape({3, 2}));
  EXPECT_EQ(y.data<float>().data(), x.data<float>().data());
  EXPECT_THROW(ops::reshape(x, {4, kUnknown}), ValueError);
  EXPECT_THROW(ops::reshape(x, {5}), ValueError);
  EXPECT_THROW(ops::reshape(x, {kUnknown, kUnknown}), ValueError);
  EXPECT_EQ(ops::reshape(Tensor::zeros({0, 2}), {kUnknown, 4}).shape(), Shape({0, 4}));
}

TEST(ShapeOpsTest, AddsAndDropsAxes) {
  const Tensor x = Tensor::zeros({2, 3});
  EXPECT_EQ(ops::expand_dims(x, 0).shape(), Shape({1, 2, 3}));
  EXPECT_EQ(ops::expand_dims(x, -1).shape(), Shape({2, 3, 1}));
  EXPECT_EQ(ops::squeeze(ops::expand_dims(x, 1), 1).shape(), Shape({2, 3}));
  EXPECT_THROW(ops::expand_dims(x, 3), ValueError);
  EXPECT_THROW(ops::squeeze(x, 0), ValueError);
  const Tensor symbolic = Tensor::symbolic({.shape = {kUnknown, 1, kUnknown}});
  EXPECT_EQ(ops::squeeze(symbolic, 1).shape(), Shape({kUnknown, kUnknown}));
}

TEST(ShapeOpsTest, TransposesAnyDtype) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  expect_floats(ops::transpose(x), {3, 2}, {1, 4, 2, 5, 3, 6});
  const Tensor y = ops::transpose(x.reshaped({1, 2, 3}), {1, 0, -1});
  expect_floats(y, {2, 1, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor words = Tensor::from<std::string>({"a", "b", "c", "d"}, {2, 2});
  EXPECT_EQ(ops::transpose(words).to_vector<std::string>(),
            (std::vector<std::string>{"a", "c", "b", "d"}));
  EXPECT_THROW(ops::transpose(x, {0, 0}), ValueError);
  EXPECT_THROW(ops::transpose(x, {0}), ValueError);
  EXPECT_THROW(ops::transpose(x, {0, 2}), ValueError);
}

TEST(ShapeOpsTest, Broadcasts) {
  expect_floats(ops::broadcast_to(floats({1, 2}, {2, 1}), {2, 3}), {2, 3}, {1, 1, 1, 2, 2, 2});
  expect_floats(ops::broadcast_to(row({1, 2}), {2, 2}), {2, 2}, {1, 2, 1, 2});
  EXPECT_THROW(ops::broadcast_to(row({1, 2}), {3}), ValueError);
  EXPECT_THROW(ops::broadcast_to(Tensor::zeros({2, 2}), {2}), ValueError);
  EXPECT_THROW(ops::broadcast_to(Tensor::zeros({2, 2}), {2, 1}), ValueError);
}

TEST(ShapeOpsTest, ConcatenatesAndSlicesAlongAnyAxis) {
  const Tensor a = floats({1, 2, 3, 4}, {2, 2}), b = floats({5, 6}, {2, 1});
  const Tensor joined = ops::concat({a, b});
  expect_floats(joined, {2, 3}, {1, 2, 5, 3, 4, 6});
  expect_floats(ops::concat({a, a}, 0), {4, 2}, {1, 2, 3, 4, 1, 2, 3, 4});
  expect_floats(ops::stack({a, a}, 1), {2, 2, 2}, {1, 2, 1, 2, 3, 4, 3, 4});
  expect_floats(ops::stack({a, a}, -1), {2, 2, 2}, {1, 1, 2, 2, 3, 3, 4, 4});
  expect_floats(ops::slice(joined, 1, 1, 2), {2, 2}, {2, 5, 4, 6});
  expect_floats(ops::slice(joined, -2, 1, kUnknown), {1, 3}, {3, 4, 6});
  expect_floats(ops::pad(b, 1, 1, 1), {2, 3}, {0, 5, 0, 0, 6, 0});
  const std::vector<Tensor> parts = ops::split(joined, 3);
  ASSERT_EQ(parts.size(), 3u);
  expect_floats(parts[1], {2, 1}, {2, 4});
}

TEST(ShapeOpsTest, ConcatenatesStrings) {
  const Tensor a = Tensor::from<std::string>({"a", "b"}, {2, 1});
  EXPECT_EQ(ops::concat({a, a}).to_vector<std::string>(),
            (std::vector<std::string>{"a", "a", "b", "b"}));
}

TEST(ShapeOpsTest, RejectsIncompatibleParts) {
  const Tensor a = Tensor::zeros({2, 2});
  EXPECT_EQ(message_of<ValueError>([&] { ops::concat({a, Tensor::zeros({3, 2})}); }),
            "concat: shapes (2, 2) and (3, 2) differ in more than axis -1; only this axis "
            "may differ");
  EXPECT_THROW(ops::concat({a, Tensor::zeros({2})}), ValueError);
  EXPECT_THROW(ops::concat({a, Tensor::zeros({})}), ValueError);
  EXPECT_THROW(ops::concat({}), ValueError);
  EXPECT_THROW(ops::concat({a}, 2), ValueError);
  EXPECT_THROW(ops::concat({a, Tensor::zeros({2, 2}, DType::kFloat64)}), TypeError);
  EXPECT_THROW(ops::stack({a, Tensor::zeros({2, 3})}), ValueError);
  EXPECT_THROW(ops::stack({}), ValueError);
  EXPECT_THROW(ops::slice(a, 0, 1, 2), ValueError);
  EXPECT_THROW(ops::slice(a, 0, -1, 1), ValueError);
  EXPECT_THROW(ops::slice(a, 0, 3, kUnknown), ValueError);
  EXPECT_THROW(ops::pad(a, 0, -1, 0), ValueError);
  EXPECT_THROW(ops::split(a, 3), ValueError);
  EXPECT_THROW(ops::split(a, 0), ValueError);
}

TEST(ShapeOpsTest, InfersUnknownDimensions) {
  const Tensor x = Tensor::symbolic({.shape = {kUnknown, 4}});
  const Tensor known = Tensor::symbolic({.shape = {8, 4}});
  EXPECT_EQ(ops::concat({x, known}).shape(), Shape({8, 8}));
  EXPECT_EQ(ops::concat({x, known}, 0).shape(), Shape({kUnknown, 4}));
  EXPECT_EQ(ops::slice(x, 0, 2, kUnknown).shape(), Shape({kUnknown, 4}));
  EXPECT_EQ(ops::slice(x, 0, 2, 3).shape(), Shape({3, 4}));
  EXPECT_EQ(ops::broadcast_to(x, {kUnknown, 4}).shape(), Shape({kUnknown, 4}));
  EXPECT_EQ(ops::split(x, 2)[1].shape(), Shape({kUnknown, 2}));
}

}  // namespace keel::ops_test
