#include <keel/layers/convolution/depthwise_conv.h>

#include <gtest/gtest.h>

#include <keel/layers/convolution/conv.h>
#include <keel/layers/functional/functional.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::depthwise_conv_test {

using layers::DepthwiseConv1D;
using layers::DepthwiseConv2D;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

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

TEST(DepthwiseConv1DTest, RejectsIncompatibleOptions) {
  EXPECT_THROW(DepthwiseConv1D({.kernel_size = 0}), ValueError);
  EXPECT_THROW(DepthwiseConv1D({.kernel_size = 1, .padding = "causal"}), ValueError);
  EXPECT_THROW(DepthwiseConv1D({.kernel_size = 1, .depth_multiplier = 0}), ValueError);
}

TEST(DepthwiseConv1DTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(
      DepthwiseConv1D({.kernel_size = 2, .depth_multiplier = 2, .dtype = DType::kFloat64}),
      testing_support::distinct_doubles({2, 4, 2}));
}

TEST(DepthwiseConv2DTest, IsAConvolutionWithAGroupForEachChannel) {
  const Tensor x = Initializer("glorot_uniform")({2, 5, 6, 3});
  const DepthwiseConv2D depthwise(
      {.kernel_size = {2, 3}, .padding = "same", .depth_multiplier = 2});
  const layers::Conv2D grouped(
      {.filters = 6, .kernel_size = {2, 3}, .padding = "same", .groups = 3});
  const Tensor expected = grouped(x);
  depthwise(x);
  depthwise->kernel().assign(ops::reshape(grouped->kernel(), {2, 3, 3, 2}));
  const Tensor y = depthwise(x);
  ASSERT_EQ(y.shape(), Shape({2, 5, 6, 6}));
  for (int64_t i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(y.data<float>()[i], expected.data<float>()[i], 1e-6);
  }
}

TEST(DepthwiseConv2DTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(DepthwiseConv2D({.kernel_size = 2,
                                                                .strides = {2, 1},
                                                                .padding = "same",
                                                                .data_format = "channels_first",
                                                                .activation = "tanh",
                                                                .dtype = DType::kFloat64}),
                                               testing_support::distinct_doubles({2, 2, 4, 3}));
}

TEST(DepthwiseConv1DTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "DepthwiseConv1D",
                         .config = R"({"kernel_size": 2, "depth_multiplier": 2})",
                         .inputs = float_spec({2, 5, 3}),
                         .output = float_spec({2, 4, 6}),
                         .trainable_weights = 2,
                         .weights = 2});
  expect_layer_contract({.class_name = "DepthwiseConv2D",
                         .config = R"({"kernel_size": 2, "depth_multiplier": 2})",
                         .inputs = float_spec({2, 5, 4, 3}),
                         .output = float_spec({2, 4, 3, 6}),
                         .trainable_weights = 2,
                         .weights = 2});
}

}  // namespace keel::depthwise_conv_test
