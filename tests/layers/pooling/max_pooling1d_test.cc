#include <keel/layers/pooling/max_pooling1d.h>

#include <cmath>

#include <gtest/gtest.h>

#include "tests/layers/gradient_check.h"

namespace keel::max_pooling1d_test {

using layers::MaxPooling1D;
using Values = std::vector<float>;

Tensor steps() { return Tensor::from<float>({-1, -3, -5, -7, -9}, {1, 5, 1}); }

TEST(MaxPooling1DTest, TakesTheGreatestOfWindows) {
  EXPECT_EQ(MaxPooling1D({})(steps()).to_vector<float>(), (Values{-1, -5}));
  EXPECT_EQ(MaxPooling1D({.pool_size = 3, .strides = 1})(steps()).to_vector<float>(),
            (Values{-1, -3, -5}));
}

TEST(MaxPooling1DTest, WhatLiesBeyondTheEndsDoesNotCount) {
  EXPECT_EQ(
      MaxPooling1D({.pool_size = 3, .strides = 2, .padding = "same"})(steps()).to_vector<float>(),
      (Values{-1, -3, -7}));
}

TEST(MaxPooling1DTest, TheGradientOfEqualOnesGoesToTheFirst) {
  const Tensor x = Tensor::zeros({1, 4, 1});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = MaxPooling1D({})(x);
  EXPECT_EQ(tape.input_gradient(ops::sum(y), {x})[0].dense().to_vector<float>(),
            (Values{1, 0, 1, 0}));
}

TEST(MaxPooling1DTest, GradientsAreSlopes) {
  for (const char* padding : {"valid", "same"}) {
    testing_support::expect_gradients_are_slopes(
        MaxPooling1D({.pool_size = 3, .strides = 2, .padding = padding, .dtype = DType::kFloat64}),
        testing_support::distinct_doubles({2, 6, 2}));
  }
}

TEST(MaxPooling1DTest, HidesNoNaN) {
  const float nan = std::nanf("");
  const Tensor y = MaxPooling1D({})(Tensor::from<float>({nan, 1, 1, nan}, {1, 4, 1}));
  EXPECT_TRUE(std::isnan(y.data<float>()[0]));
  EXPECT_TRUE(std::isnan(y.data<float>()[1]));
}

}  // namespace keel::max_pooling1d_test
