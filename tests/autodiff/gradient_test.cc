#include <gtest/gtest.h>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>

#include "tests/autodiff/small_tensors.h"

namespace keel::gradient_test {

using namespace testing_support;  // NOLINT: helpers of this folder's tests

TEST(GradientTest, AddsInPlaceIfTheSumIsNotShared) {
  Gradient sum(floats({1, 2}, {2}));
  const float* const before = sum.dense().data<float>().data();
  sum.add(row({10, 20}));
  expect_floats(sum.dense(), {2}, {11, 22});
  EXPECT_EQ(sum.dense().data<float>().data(), before);
}

TEST(GradientTest, AddingDoesNotChangeSharedTensors) {
  const Tensor held = row({1, 2});
  const Tensor same_bytes = held.reshaped({2, 1});
  Gradient sum(held);
  sum.add(row({10, 20}));
  expect_floats(held, {2}, {1, 2});
  expect_floats(same_bytes, {2, 1}, {1, 2});
  Gradient other = sum;
  other.add(sum);
  expect_floats(other.dense(), {2}, {22, 44});
  expect_floats(sum.dense(), {2}, {11, 22});
}

TEST(GradientTest, AddingIsDifferentiableUnderATape) {
  const Tensor x = row({3});
  GradientTape tape;
  tape.watch(x);
  Gradient sum(ops::square(x));
  sum.add(ops::scale(x, 2));
  const Tensor y = sum.dense();
  expect_floats(y, {1}, {15});
  expect_floats(tape.input_gradient(y, {x})[0].dense(), {1}, {8});
}

TEST(GradientTest, RowsAndDenseGradientsAddUp) {
  const IndexedSlices rows = {
      .ids = ids({1, 1}), .values = floats({1, 2, 3, 4}, {2, 2}), .dense_shape = {2, 2}};
  Gradient sum(floats({10, 10, 10, 10}, {2, 2}));
  sum.add(rows);
  expect_floats(sum.dense(), {2, 2}, {10, 10, 14, 16});
  Gradient joined(rows);
  joined.add(rows);
  EXPECT_TRUE(joined.is_slices());
  joined.add(floats({10, 10, 10, 10}, {2, 2}));
  expect_floats(joined.dense(), {2, 2}, {10, 10, 18, 22});
}

TEST(GradientTest, EmptyGradientsAddNothing) {
  Gradient sum;
  sum.add(Gradient());
  EXPECT_FALSE(sum);
  EXPECT_THROW(sum.dense(), RuntimeError);
  EXPECT_THROW(sum.slices(), RuntimeError);
  const Tensor x = row({1});
  sum.add(x);
  sum.add(Gradient());
  expect_floats(sum.dense(), {1}, {1});
}

}  // namespace keel::gradient_test
