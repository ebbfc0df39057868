#include <gtest/gtest.h>

#include <keel/layers/convolution/conv.h>
#include <keel/layers/convolution/depthwise_conv.h>
#include <keel/layers/functional/functional.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::separable_conv_test {

using layers::SeparableConv1D;
using layers::SeparableConv2D;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

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

TEST(SeparableConv1DTest, RejectsIncompatibleOptions) {
  EXPECT_THROW(SeparableConv1D({.filters = 0, .kernel_size = 1}), ValueError);
  EXPECT_THROW(SeparableConv1D({.filters = 1, .kernel_size = 1, .padding = "causal"}), ValueError);
}

TEST(SeparableConv1DTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(
      SeparableConv1D({.filters = 2, .kernel_size = 2, .dtype = DType::kFloat64}),
      testing_support::distinct_doubles({2, 4, 2}));
}

TEST(SeparableConv2DTest, HasThreeWeights) {
  const SeparableConv2D layer({.filters = 4, .kernel_size = {2, 3}, .depth_multiplier = 2});
  EXPECT_EQ(layer(layers::input({.shape = {5, kUnknown, 3}})).shape(),
            Shape({kUnknown, 4, kUnknown, 4}));
  EXPECT_EQ(layer->depthwise_kernel().shape(), Shape({2, 3, 3, 2}));
  EXPECT_EQ(layer->pointwise_kernel().shape(), Shape({1, 1, 6, 4}));
}

TEST(SeparableConv2DTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(SeparableConv2D({.filters = 2,
                                                                .kernel_size = 2,
                                                                .depth_multiplier = 2,
                                                                .activation = "relu",
                                                                .dtype = DType::kFloat64}),
                                               testing_support::distinct_doubles({2, 3, 3, 2}));
}

TEST(SeparableConv1DTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "SeparableConv1D",
                         .config = R"({"filters": 4, "kernel_size": 2})",
                         .inputs = float_spec({2, 5, 3}),
                         .output = float_spec({2, 4, 4}),
                         .trainable_weights = 3,
                         .weights = 3});
  expect_layer_contract({.class_name = "SeparableConv2D",
                         .config = R"({"filters": 4, "kernel_size": 2})",
                         .inputs = float_spec({2, 5, 4, 3}),
                         .output = float_spec({2, 4, 3, 4}),
                         .trainable_weights = 3,
                         .weights = 3});
}

}  // namespace keel::separable_conv_test
