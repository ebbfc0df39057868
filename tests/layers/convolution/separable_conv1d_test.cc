#include <keel/layers/convolution/separable_conv1d.h>

#include <gtest/gtest.h>

#include <keel/layers/convolution/conv1d.h>
#include <keel/layers/convolution/depthwise_conv1d.h>
#include <keel/layers/functional/input_layer.h>

#include "tests/layers/gradient_check.h"

namespace keel::separable_conv1d_test {

using layers::SeparableConv1D;

TEST(SeparableConv1DTest, IsADepthwiseConvolutionAndThenOneOfSingleSteps) {
  const Tensor x = Initializer("glorot_uniform")({2, 5, 3});
  const SeparableConv1D layer({.filters = 4, .kernel_size = 2, .depth_multiplier = 2});
  const Tensor y = layer(x);
  const layers::DepthwiseConv1D depthwise({.kernel_size = 2, .depth_multiplier = 2});
  const layers::Conv1D pointwise({.filters = 4, .kernel_size = 1});
  pointwise(depthwise(x));
  depthwise->kernel().assign(layer->depthwise_kernel());
  pointwise->kernel().assign(layer->pointwise_kernel());
  EXPECT_EQ(y.to_vector<float>(), pointwise(depthwise(x)).to_vector<float>());
}

TEST(SeparableConv1DTest, HasThreeWeights) {
  const SeparableConv1D layer({.filters = 4, .kernel_size = 2});
  EXPECT_EQ(layer(layers::input({.shape = {kUnknown, 3}})).shape(), Shape({kUnknown, kUnknown, 4}));
  EXPECT_EQ(layer->depthwise_kernel().shape(), Shape({2, 3, 1}));
  EXPECT_EQ(layer->pointwise_kernel().shape(), Shape({1, 3, 4}));
  EXPECT_EQ(layer->bias().shape(), Shape({4}));
}

TEST(SeparableConv1DTest, RefusesOptionsThatDoNotFit) {
  EXPECT_THROW(SeparableConv1D({.filters = 0, .kernel_size = 1}), ValueError);
  EXPECT_THROW(SeparableConv1D({.filters = 1, .kernel_size = 1, .padding = "causal"}), ValueError);
}

TEST(SeparableConv1DTest, GradientsAreSlopes) {
  testing_support::expect_gradients_are_slopes(
      SeparableConv1D({.filters = 2, .kernel_size = 2, .dtype = DType::kFloat64}),
      testing_support::distinct_doubles({2, 4, 2}));
}

}  // namespace keel::separable_conv1d_test
