// Tests autodiff/ops/resize.cc and framework/kernels/convolution/axis_map.cc.
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/spatial_ops.h>
#include <keel/autodiff/tape.h>

#include "tests/support/expectations.h"

namespace keel::resize_test {

using Doubles = std::vector<double>;
constexpr const char* kAll[] = {"nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"};

Doubles resized(const Doubles& x, int64_t size, const std::string& interpolation) {
  const Tensor in = Tensor::from(x, {1, std::ssize(x), 1});
  return ops::resize_axis(in, 1, size, interpolation).to_vector<double>();
}

void expect_close(const Doubles& received, const Doubles& expected) {
  testing_support::expect_near(received, expected, {.absolute = 1e-12});
}

TEST(ResizeTest, InterpolatesBetweenCenters) {
  expect_close(resized({1, 2, 4}, 6, "bilinear"), {1, 1.25, 1.75, 2.5, 3.5, 4});
  expect_close(resized({1, 2, 3, 4}, 2, "bilinear"), {1.5, 3.5});
  EXPECT_EQ(resized({1, 2, 3}, 6, "nearest"), (Doubles{1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(resized({1, 2, 3, 4}, 2, "nearest"), (Doubles{2, 4}));
}

// The new centers are at distances of 0.25, 0.75, 1.25 and 1.75 from the only position that is not
// zero, and far from the ends.
TEST(ResizeTest, BicubicWeightsAreThoseOfKeys) {
  const Doubles y = resized({0, 0, 0, 0, 1, 0, 0, 0, 0}, 18, "bicubic");
  const Doubles half = {1 - 2.5 / 16 + 1.5 / 64, 1 - 2.5 * 9 / 16 + 1.5 * 27 / 64,
                        2 - 4 * 1.25 + 2.5 * 1.5625 - 0.5 * 1.953125,
                        2 - 4 * 1.75 + 2.5 * 3.0625 - 0.5 * 5.359375, 0};
  expect_close({y[9], y[10], y[11], y[12], y[13]}, half);
  expect_close({y[8], y[7], y[6], y[5], y[4]}, half);
}

TEST(ResizeTest, ConstantsAndTheSameSizeAreUnchanged) {
  for (const char* interpolation : kAll) {
    expect_close(resized({3, 3, 3}, 7, interpolation), Doubles(7, 3.0));
    expect_close(resized({1, 5, 2}, 3, interpolation), {1, 5, 2});
  }
}

// The result is linear in x.
TEST(ResizeTest, GradientsApplyTheTransposedWeights) {
  const Tensor x = Tensor::from<double>({1, 2, 3, 4, 5, 6}, {1, 3, 2});
  for (const char* interpolation : kAll) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = ops::resize_axis(x, 1, 5, interpolation);
    const Tensor weights = Tensor::from<double>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, y.shape());
    const Tensor gradient = tape.input_gradient(ops::sum(y * weights), {x})[0].dense();
    EXPECT_NEAR(ops::sum(gradient * x).item<double>(), ops::sum(y * weights).item<double>(), 1e-9);
  }
}

TEST(ResizeTest, RejectsUnknownInterpolationsAndSizes) {
  EXPECT_THROW(resized({1, 2}, 4, "cubic"), ValueError);
  EXPECT_THROW(resized({1, 2}, 0, "nearest"), ValueError);
  EXPECT_THROW(ops::resize_axis(Tensor::zeros({1, 2}, DType::kInt32), 1, 3, "nearest"), TypeError);
}

}  // namespace keel::resize_test
