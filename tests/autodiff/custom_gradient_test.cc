#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>

#include "tests/autodiff/small_tensors.h"
#include "tests/support/errors.h"

namespace keel::custom_gradient_test {

using namespace testing_support;  // NOLINT: helpers of this folder's tests

// Returns x, with a gradient that is negated.
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

TEST(CustomGradientTest, MarksOutputsWithoutGradient) {
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

TEST(CustomGradientTest, BackwardMayRunAfterItsScopeEnds) {
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

TEST(CustomGradientTest, RejectsAWrongNumberOfGradients) {
  const Tensor x = row({2});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = custom_gradient({x}, [&]() -> WithBackward {
    return {.outputs = {x},
            .backward = [](std::span<const Gradient>) { return std::vector<Gradient>(2); }};
  })[0];
  EXPECT_THROW(tape.input_gradient(y, {x}), ValueError);
}

// Returns the error of differentiating `loss_of` a custom gradient of x whose backward function
// returns `returned`.
std::string error_of(const Tensor& x, const Gradient& returned, auto&& loss_of) {
  GradientTape tape;
  tape.watch(x);
  const Tensor y = custom_gradient({row({1}), loss_of(x)}, [&]() -> WithBackward {
    return {.outputs = {row({1})}, .backward = [=](std::span<const Gradient>) {
              return std::vector<Gradient>{{}, returned};
            }};
  })[0];
  return message_if_any<ValueError>([&] { tape.input_gradient(y, {x}); });
}

TEST(CustomGradientTest, RejectsGradientsOfAnotherShapeBeforeTheyReachAnOp) {
  const Tensor x = Tensor::full<float>({300, 16}, 1), w = Tensor::full<float>({16, 16}, 1);
  const Tensor b = Tensor::full<float>({16}, 0);
  for (const Shape& shape : {Shape{}, Shape{1, 16}, Shape{16, 300}}) {
    const Gradient wrong = Tensor::full<float>(shape, 1);
    for (const bool relu : {false, true}) {
      const std::string error =
          error_of(w, wrong, [&](const Tensor& k) { return ops::dense(x, k, b, relu); });
      EXPECT_EQ(error,
                str("GradientTape: the gradient that CustomGradient returns for input 1 must "
                    "have its shape (300, 16), received ",
                    shape));
    }
    EXPECT_NE(error_of(x, wrong,
                       [&](const Tensor& f) {
                         return ops::dot_interaction(std::vector<Tensor>{f, f * 2.0}, false);
                       }),
              "");
    EXPECT_NE(error_of(x, wrong, [](const Tensor& t) { return t * 2.0; }), "");
  }
}

TEST(CustomGradientTest, RejectsSlicesOfAnotherShape) {
  const Tensor table = Tensor::full<float>({5, 2}, 1);
  const auto returned = [&](int64_t ids, const Shape& values, const Shape& dense) {
    const IndexedSlices slices = {.ids = Tensor::zeros({ids}, DType::kInt64),
                                  .values = Tensor::zeros(values),
                                  .dense_shape = dense};
    return error_of(table, slices, [](const Tensor& t) { return t; });
  };
  EXPECT_EQ(returned(3, {3, 2}, {5, 2}), "");
  EXPECT_NE(returned(3, {3, 2}, {4, 2}), "");
  EXPECT_NE(returned(3, {2, 2}, {5, 2}), "");
  EXPECT_NE(returned(3, {3, 1}, {5, 2}), "");
}

TEST(CustomGradientTest, RejectsGradientsOfWrongDType) {
  const auto same = [](const Tensor& t) { return t; };
  EXPECT_THROW(error_of(row({1}), Tensor::zeros({1}, DType::kFloat64), same), TypeError);
  const IndexedSlices slices = {.ids = Tensor::zeros({1}, DType::kInt64),
                                .values = Tensor::zeros({1}, DType::kFloat64),
                                .dense_shape = {1}};
  EXPECT_THROW(error_of(row({1}), slices, same), TypeError);
}

TEST(CustomGradientTest, RejectsSymbolicInputs) {
  EXPECT_THROW(reversed(Tensor::symbolic({.shape = {kUnknown, 2}})), RuntimeError);
}

}  // namespace keel::custom_gradient_test
