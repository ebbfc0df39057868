// Tests cases of autodiff/keras_ops/reductions.cc that Keras's records do not have: values at the
// edges of bins, NaN in argmax(), and gradients of reductions that leave NaN out.
#include <keel/autodiff/keras_ops/reductions.h>

#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>

#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::reductions_test {

namespace K = keras_ops;
using testing_support::floats;
using Floats = std::vector<float>;

TEST(HistogramTest, EdgesHaveThePrecisionOfTheValues) {
  // Float 0.7 is less than 0.7, and float 0.1 is greater than 0.1. Both are at the edges of bins of
  // numpy, whose edges of float32 numbers are float32 numbers.
  const auto [counts, edges] = K::histogram(floats({0.1F, 0.3F, 0.7F, 1}, {4}), 10, {{0, 1}});
  EXPECT_EQ(counts.to_vector<float>(), (Floats{0, 1, 0, 1, 0, 0, 0, 1, 0, 1}));
  EXPECT_EQ(edges.to_vector<float>()[7], 0.7F);
  const auto [inside, ends] = K::histogram(floats({0.1F, 0.7F, 0.7F}, {3}), 1, {{0.7, 0.9}});
  EXPECT_EQ(inside.to_vector<float>(), Floats{2});
  EXPECT_EQ(K::histogram(floats({0.1F}, {1}), 1, {{0, 0.1}}).first.to_vector<float>(), Floats{1});
}

TEST(ArgmaxTest, NanIsTheGreatestAndTheLeastElement) {
  // numpy.argmax([1, nan, 3, nan]) is 1, and so is numpy.argmin of it.
  const Tensor x = floats({1, std::nanf(""), 3, std::nanf("")}, {4});
  EXPECT_EQ(K::argmax(x).item<int32_t>(), 1);
  EXPECT_EQ(K::argmin(x).item<int32_t>(), 1);
  EXPECT_EQ(K::nanargmax(x).item<int32_t>(), 2);
  EXPECT_EQ(K::nanargmin(x).item<int32_t>(), 0);
  EXPECT_EQ(ops::argmax(floats({3, 3, std::nanf("")}, {3})).item<int64_t>(), 2);
  EXPECT_EQ(ops::argmax(floats({std::nanf(""), 9, 3}, {3})).item<int64_t>(), 0);
  EXPECT_EQ(K::argmax(floats({2, 5, 5, 1}, {2, 2}), 0).to_vector<int32_t>(),
            (std::vector<int32_t>{1, 0}));
}

Floats gradient_of(Tensor (*fn)(const Tensor&, const K::Axes&, bool), const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  return tape.input_gradient(fn(x, {}, false), {x})[0].dense().to_vector<float>();
}

TEST(NanVarTest, GradientsAreZeroWhereElementsAreLeftOut) {
  // The variance of 1, 2 and 6 is 14 / 3; its gradient is 2 (x - 3) / 3.
  const Tensor x = floats({1, std::nanf(""), 2, 6}, {4});
  EXPECT_NEAR(K::nanvar(x).item<float>(), 14.0 / 3, 1e-6);
  const double deviation = std::sqrt(14.0 / 3);
  testing_support::expect_near(gradient_of(K::nanvar, x),
                               std::vector<double>{-4.0 / 3, 0, -2.0 / 3, 2}, {.absolute = 1e-6});
  testing_support::expect_near(
      gradient_of(K::nanstd, x),
      std::vector<double>{-2 / 3.0 / deviation, 0, -1 / 3.0 / deviation, 1 / deviation},
      {.absolute = 1e-6});
  // The mean of the same elements.
  testing_support::expect_near(gradient_of(K::nanmean, x),
                               std::vector<double>{1.0 / 3, 0, 1.0 / 3, 1.0 / 3},
                               {.absolute = 1e-6});
}

TEST(NanVarTest, InfiniteElementsAreNotLeftOut) {
  EXPECT_TRUE(std::isnan(K::nanvar(floats({1, INFINITY}, {2})).item<float>()));
}

}  // namespace keel::reductions_test
