#include "autodiff/custom_gradient.h"

#include "gtest/gtest.h"

#include "autodiff/ops.h"
#include "autodiff/tape.h"
#include "tests/autodiff/small_tensors.h"

namespace keel {
namespace {

using namespace testing_support;  // NOLINT: helpers of this folder's tests

// Passes x on and turns its gradient around.
Tensor reversed(const Tensor& x) {
  return custom_gradient({x}, [&]() -> WithBackward {
    return {.outputs = {x}, .backward = [](std::span<const Gradient> dy) {
              return std::vector<Gradient>{-dy[0].dense()};
            }};
  })[0];
}

TEST(CustomGradientTest, UsesTheGradientSupplied) {
  const Tensor x = row({2, 3});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = reversed(x);
  expect_floats(y, {2}, {2, 3});
  EXPECT_NE(y.id(), x.id());
  expect_floats(tape.input_gradient(y * y, {x})[0].dense(), {2}, {-4, -6});
}

TEST(CustomGradientTest, DoesNotRecordTheForwardFunction) {
  const Tensor x = row({2});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = custom_gradient({x}, [&]() -> WithBackward {
    EXPECT_FALSE(GradientTape::any_active());
    return {.outputs = {x * x},
            .backward = [](std::span<const Gradient>) { return std::vector<Gradient>(1); }};
  })[0];
  expect_floats(y, {1}, {4});
  EXPECT_FALSE(tape.input_gradient(y, {x})[0]);
}

TEST(CustomGradientTest, TellsWhichOutputsHaveNoGradient) {
  const Tensor x = row({2});
  GradientTape tape;
  tape.watch(x);
  const auto outputs = custom_gradient({x}, [&]() -> WithBackward {
    return {.outputs = {x * x, x * x * x}, .backward = [x](std::span<const Gradient> dy) {
              EXPECT_FALSE(dy[0]);
              return std::vector<Gradient>{dy[1].dense() * (ops::square(x) * 3)};
            }};
  });
  expect_floats(tape.input_gradient(outputs[1], {x})[0].dense(), {1}, {12});
}

TEST(CustomGradientTest, IsDifferentiatedAgainThroughItsBackward) {
  const Tensor x = row({2});
  GradientTape outer;
  outer.watch(x);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(x);
    const Tensor y = custom_gradient({x}, [&]() -> WithBackward {
      return {.outputs = {x * x}, .backward = [x](std::span<const Gradient> dy) {
                return std::vector<Gradient>{dy[0].dense() * x * x};
              }};
    })[0];
    first = inner.input_gradient(y, {x})[0].dense();
  }
  expect_floats(first, {1}, {4});
  expect_floats(outer.input_gradient(first, {x})[0].dense(), {1}, {4});
}

TEST(CustomGradientTest, OutlivesTheCodeThatRecordedIt) {
  const Tensor x = row({2});
  GradientTape tape;
  tape.watch(x);
  Tensor y;
  {
    const Tensor factor = row({5});
    y = custom_gradient({x}, [&]() -> WithBackward {
      return {.outputs = {x * factor}, .backward = [factor](std::span<const Gradient> dy) {
                return std::vector<Gradient>{dy[0].dense() * factor};
              }};
    })[0];
  }
  expect_floats(tape.input_gradient(y, {x})[0].dense(), {1}, {5});
}

TEST(CustomGradientTest, RefusesAWrongNumberOfGradients) {
  const Tensor x = row({2});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = custom_gradient({x}, [&]() -> WithBackward {
    return {.outputs = {x},
            .backward = [](std::span<const Gradient>) { return std::vector<Gradient>(2); }};
  })[0];
  EXPECT_THROW(tape.input_gradient(y, {x}), ValueError);
}

TEST(CustomGradientTest, RefusesSymbolicInputs) {
  EXPECT_THROW(reversed(Tensor::symbolic({.shape = {kUnknown, 2}})), RuntimeError);
}

}  // namespace
}  // namespace keel
