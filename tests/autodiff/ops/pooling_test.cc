// Tests autodiff/ops/pooling.cc and framework/kernels/convolution/pooling.cc.
#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/spatial_ops.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/base/parallel.h>

#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::pooling_op_test {

using ops::PoolingRanges;
using testing_support::normal;
using Floats = std::vector<float>;

const PoolingRanges kPairs = {{{0, 2}, {1, 3}}, {{0, 2}, {2, 3}}};

Tensor image() { return Tensor::from<float>({1, 2, 3, 4, 9, 6, 7, 8, 5}, {1, 3, 3, 1}); }

TEST(PoolingOpTest, TakesMaximaAndMeansOfWindows) {
  EXPECT_EQ(ops::max_pool(image(), kPairs).to_vector<float>(), (Floats{9, 6, 9, 6}));
  EXPECT_EQ(ops::average_pool(image(), kPairs).to_vector<float>(), (Floats{4, 4.5, 7, 5.5}));
}

TEST(PoolingOpTest, GradientsAreSpreadOverTheWindows) {
  const Tensor x = image();
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor maxima = ops::sum(ops::max_pool(x, kPairs));
  const Tensor means = ops::sum(ops::average_pool(x, kPairs));
  EXPECT_EQ(tape.input_gradient(maxima, {x})[0].dense().to_vector<float>(),
            (Floats{0, 0, 0, 0, 2, 2, 0, 0, 0}));
  EXPECT_EQ(tape.input_gradient(means, {x})[0].dense().to_vector<float>(),
            (Floats{0.25, 0.25, 0.5, 0.5, 0.5, 1, 0.25, 0.25, 0.5}));
}

TEST(PoolingOpTest, TheGradientOfEqualMaximaGoesToTheFirst) {
  const Tensor x = Tensor::zeros({1, 2, 2, 1});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = ops::sum(ops::max_pool(x, {{{0, 2}}, {{0, 2}}}));
  EXPECT_EQ(tape.input_gradient(y, {x})[0].dense().to_vector<float>(), (Floats{1, 0, 0, 0}));
}

TEST(PoolingOpTest, NaNIsAMaximum) {
  const float nan = std::nanf("");
  const Tensor x = Tensor::from<float>({1, nan, 5, nan, 7, 7}, {1, 3, 2});
  const Floats y = ops::max_pool(x, {{{0, 2}, {2, 3}}}).to_vector<float>();
  EXPECT_EQ(y[0], 5);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[2], 7);
}

// sum(pool(x)^3) has the gradient 3 pool(x)^2 at the maxima, or 3 pool(x)^2 / n at the n positions
// of a mean.
TEST(PoolingOpTest, HasSecondGradients) {
  const Tensor x = image();
  const PoolingRanges columns = {{{0, 3}}, {{0, 1}, {1, 3}}};
  for (const bool max : {true, false}) {
    GradientTape outer;
    outer.watch(x);
    GradientTape tape;
    tape.watch(x);
    const Tensor y = max ? ops::max_pool(x, columns) : ops::average_pool(x, columns);
    const Tensor first = tape.input_gradient(ops::sum(y * y * y), {x})[0].dense();
    const Tensor second = outer.input_gradient(ops::sum(first), {x})[0].dense();
    // The windows have the maxima 7 and 9, and the means 4 and 5.5.
    const Floats expected =
        max ? Floats{0, 0, 0, 0, 54, 0, 42, 0, 0} : Floats{8, 5.5, 5.5, 8, 5.5, 5.5, 8, 5.5, 5.5};
    testing_support::expect_near(second.to_vector<float>(), expected, {.absolute = 1e-4});
  }
}

TEST(PoolingOpTest, BitsDoNotDependOnTheNumberOfWorkers) {
  const int before = num_workers();
  const Tensor x = normal({7, 40, 30, 9}, 1);
  PoolingRanges ranges(2);
  for (int64_t i = 0; i < 20; ++i) ranges[0].push_back({i, i + 3});
  for (int64_t i = 0; i < 10; ++i) ranges[1].push_back({2 * i, 2 * i + 5});
  const auto compute = [&](int count) {
    set_num_workers(count);
    GradientTape tape;
    tape.watch(x);
    const Tensor y = ops::max_pool(x, ranges) + ops::average_pool(x, ranges);
    const Tensor gradient = tape.input_gradient(ops::sum(ops::square(y)), {x})[0].dense();
    return std::pair(y, gradient);
  };
  const auto alone = compute(1), together = compute(3);
  set_num_workers(before);
  testing_support::expect_same_bits(alone.first, together.first);
  testing_support::expect_same_bits(alone.second, together.second);
}

TEST(PoolingOpTest, RejectsRangesThatDoNotFit) {
  EXPECT_THROW(ops::max_pool(image(), {{{0, 2}}}), ValueError);
  EXPECT_THROW(ops::max_pool(image(), {{{0, 4}}, {{0, 1}}}), ValueError);
  EXPECT_THROW(ops::average_pool(image(), {{{1, 1}}, {{0, 1}}}), ValueError);
  EXPECT_THROW(ops::average_pool(image(), {{{-1, 1}}, {{0, 1}}}), ValueError);
  EXPECT_THROW(ops::max_pool(image().cast(DType::kInt32), kPairs), TypeError);
}

}  // namespace keel::pooling_op_test
