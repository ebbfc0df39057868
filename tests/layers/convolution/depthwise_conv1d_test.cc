#include <keel/layers/convolution/depthwise_conv1d.h>

#include <gtest/gtest.h>

#include <keel/layers/convolution/conv1d.h>
#include <keel/layers/functional/input_layer.h>

#include "tests/layers/gradient_check.h"

namespace keel::depthwise_conv1d_test {

using layers::DepthwiseConv1D;

// A grouped convolution with one group per channel is the same function.
TEST(DepthwiseConv1DTest, IsAConvolutionWithAGroupForEachChannel) {
  const Tensor x = Initializer("glorot_uniform")({2, 6, 3});
  const DepthwiseConv1D depthwise({.kernel_size = 2, .strides = 2, .depth_multiplier = 2});
  const layers::Conv1D grouped({.filters = 6, .kernel_size = 2, .strides = 2, .groups = 3});
  depthwise(x);
  const Tensor expected = grouped(x);
  depthwise->kernel().assign(ops::reshape(grouped->kernel(), {2, 3, 2}));
  const Tensor y = depthwise(x);
  ASSERT_EQ(y.shape(), Shape({2, 3, 6}));
  for (int64_t i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(y.data<float>()[i], expected.data<float>()[i], 1e-6);
  }
}

TEST(DepthwiseConv1DTest, SpecsFollowFromUnknownSteps) {
  const DepthwiseConv1D layer({.kernel_size = 2, .padding = "same"});
  EXPECT_EQ(layer(layers::input({.shape = {kUnknown, 3}})).shape(), Shape({kUnknown, kUnknown, 3}));
  EXPECT_EQ(layer->bias().shape(), Shape({3}));
}

TEST(DepthwiseConv1DTest, RefusesOptionsThatDoNotFit) {
  EXPECT_THROW(DepthwiseConv1D({.kernel_size = 0}), ValueError);
  EXPECT_THROW(DepthwiseConv1D({.kernel_size = 1, .padding = "causal"}), ValueError);
  EXPECT_THROW(DepthwiseConv1D({.kernel_size = 1, .depth_multiplier = 0}), ValueError);
}

TEST(DepthwiseConv1DTest, GradientsAreSlopes) {
  testing_support::expect_gradients_are_slopes(
      DepthwiseConv1D({.kernel_size = 2, .depth_multiplier = 2, .dtype = DType::kFloat64}),
      testing_support::distinct_doubles({2, 4, 2}));
}

}  // namespace keel::depthwise_conv1d_test
