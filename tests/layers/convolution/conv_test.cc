#include <keel/layers/convolution/conv.h>

#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/expectations.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::conv_test {

using layers::Conv1D;
using layers::Conv2D;
using layers::Conv3D;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::sequence;
using Floats = std::vector<float>;

// A filter of ones computes sums of windows.
Floats sums(Conv1DOptions options, const Floats& x) {
  options.filters = 1;
  options.kernel_initializer = "ones";
  const Conv1D conv(options);
  return conv(sequence(x)).to_vector<float>();
}

TEST(Conv1DTest, PaddingDeterminesTheWindows) {
  const Floats x = {1, 2, 3, 4};
  EXPECT_EQ(sums({.kernel_size = 3}, x), Floats({6, 9}));
  EXPECT_EQ(sums({.kernel_size = 3, .padding = "same"}, x), Floats({3, 6, 9, 7}));
  EXPECT_EQ(sums({.kernel_size = 3, .padding = "causal"}, x), Floats({1, 3, 6, 9}));
  EXPECT_EQ(sums({.kernel_size = 2, .padding = "same"}, x), Floats({3, 5, 7, 4}));
}

TEST(Conv1DTest, StridesAndDilationsSpreadWindows) {
  const Floats x = {1, 2, 3, 4, 5};
  EXPECT_EQ(sums({.kernel_size = 2, .strides = 2}, x), Floats({3, 7}));
  EXPECT_EQ(sums({.kernel_size = 2, .strides = 2, .padding = "same"}, x), Floats({3, 7, 5}));
  EXPECT_EQ(sums({.kernel_size = 2, .dilation_rate = 2}, x), Floats({4, 6, 8}));
  EXPECT_EQ(sums({.kernel_size = 2, .padding = "causal", .dilation_rate = 2}, x),
            Floats({1, 2, 4, 6, 8}));
}

TEST(Conv1DTest, GroupsSeeTheirShareOfTheChannels) {
  const Conv1D conv({.filters = 4, .kernel_size = 1, .groups = 2, .kernel_initializer = "ones"});
  const Tensor y = conv(Tensor::from<float>({1, 2, 10, 20}, {1, 1, 4}));
  EXPECT_EQ(conv->kernel().shape(), Shape({1, 2, 4}));
  EXPECT_EQ(y.to_vector<float>(), Floats({3, 3, 30, 30}));
}

TEST(Conv1DTest, ChannelsFirstExchangesTheAxes) {
  const Tensor x = Initializer("glorot_uniform")({2, 3, 5});
  const Conv1D last({.filters = 4, .kernel_size = 2});
  const Conv1D first({.filters = 4, .kernel_size = 2, .data_format = "channels_first"});
  const Tensor expected = ops::transpose(last(ops::transpose(x, {0, 2, 1})), {0, 2, 1});
  first(x);
  first->kernel().assign(last->kernel());
  EXPECT_EQ(first(x).to_vector<float>(), expected.to_vector<float>());
  EXPECT_EQ(first(x).shape(), Shape({2, 4, 4}));
}

TEST(Conv1DTest, AcceptsUnknownStepsInGraphs) {
  const Tensor x = layers::input({.shape = {kUnknown, 1}});
  const Tensor y = Conv1D({.filters = 1, .kernel_size = 2, .kernel_initializer = "ones"})(x);
  EXPECT_EQ(y.shape(), Shape({kUnknown, kUnknown, 1}));
  const Functional model({.inputs = x, .outputs = y});
  EXPECT_EQ(model(sequence({1, 2, 3})).to_vector<float>(), Floats({3, 5}));
}

TEST(Conv1DTest, ConfigsWriteSizesAsLists) {
  const Conv1D conv({.filters = 1, .kernel_size = 3, .strides = 2});
  const Config config = layers::serialize(*conv)["config"];
  EXPECT_EQ(to_json(config["kernel_size"]), "[3]");
  EXPECT_EQ(to_json(config["strides"]), "[2]");
}

TEST(Conv1DTest, RejectsIncompatibleOptions) {
  EXPECT_THROW(Conv1D({.filters = 0, .kernel_size = 1}), ValueError);
  EXPECT_THROW(Conv1D({.filters = 1}), ValueError);
  EXPECT_THROW(Conv1D({.filters = 3, .kernel_size = 1, .groups = 2}), ValueError);
  EXPECT_THROW(
      Conv1D(
          {.filters = 1, .kernel_size = 1, .padding = "causal", .data_format = "channels_first"}),
      ValueError);
}

TEST(Conv1DTest, RejectsIncompatibleInputs) {
  const Conv1D conv({.filters = 2, .kernel_size = 3, .groups = 2});
  EXPECT_THROW(conv(Tensor::zeros({2, 3})), ValueError);
  EXPECT_THROW(conv(Tensor::zeros({2, 4, 3})), ValueError);
  EXPECT_THROW(conv(layers::input({.shape = {4, kUnknown}})), ValueError);
  conv(Tensor::zeros({2, 4, 2}));
  EXPECT_THROW(conv(Tensor::zeros({2, 2, 2})), ValueError);
  EXPECT_THROW(conv(Tensor::zeros({2, 4, 4})), ValueError);
}

TEST(Conv1DTest, GradientsMatchFiniteDifferences) {
  const Tensor x = testing_support::distinct_doubles({2, 5, 2});
  for (const char* padding : {"valid", "same", "causal"}) {
    testing_support::expect_gradients_are_slopes(Conv1D({.filters = 2,
                                                         .kernel_size = 3,
                                                         .strides = 2,
                                                         .padding = padding,
                                                         .groups = 2,
                                                         .activation = "tanh",
                                                         .dtype = DType::kFloat64}),
                                                 x);
  }
}

// The image 0, 1, 2, ... row by row, filtered with ones.
Floats image_sums(Conv2DOptions options, int64_t rows, int64_t columns) {
  Floats x(rows * columns);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  options.filters = 1;
  options.kernel_initializer = "ones";
  return Conv2D(options)(Tensor::from(x, {1, rows, columns, 1})).to_vector<float>();
}

TEST(Conv2DTest, AxesHaveTheirOwnSizes) {
  EXPECT_EQ(image_sums({.kernel_size = {1, 2}}, 2, 3), Floats({1, 3, 7, 9}));
  EXPECT_EQ(image_sums({.kernel_size = {2, 1}}, 2, 3), Floats({3, 5, 7}));
  EXPECT_EQ(image_sums({.kernel_size = 2, .padding = "same"}, 2, 3), Floats({8, 12, 7, 7, 9, 5}));
  EXPECT_EQ(image_sums({.kernel_size = 1, .strides = {1, 2}}, 2, 3), Floats({0, 2, 3, 5}));
  EXPECT_EQ(image_sums({.kernel_size = 2, .dilation_rate = {1, 2}}, 2, 3), Floats({10}));
}

// Convolutions over axes of size 1 are those with fewer axes.
TEST(Conv3DTest, ContainsConvolutionsOverFewerAxes) {
  const Tensor x = testing_support::normal({2, 6, 5, 3}, 1);
  const Conv2D flat({.filters = 4, .kernel_size = {2, 3}, .strides = {1, 2}, .padding = "same"});
  const Conv3D deep(
      {.filters = 4, .kernel_size = {2, 1, 3}, .strides = {1, 1, 2}, .padding = "same"});
  const Tensor expected = flat(x);
  const Tensor volume = x.reshaped({2, 6, 1, 5, 3});
  deep(volume);
  deep->kernel().assign(ops::reshape(flat->kernel(), {2, 1, 3, 3, 4}));
  testing_support::expect_same_bits(deep(volume).reshaped(expected.shape()), expected);
}

TEST(Conv3DTest, ChannelsFirstMovesTheAxis) {
  const Tensor x = testing_support::normal({2, 3, 4, 5, 6}, 1);
  const Conv3D last({.filters = 2, .kernel_size = 2, .groups = 1, .activation = "relu"});
  const Conv3D first(
      {.filters = 2, .kernel_size = 2, .data_format = "channels_first", .activation = "relu"});
  const Tensor expected = ops::transpose(last(ops::transpose(x, {0, 2, 3, 4, 1})), {0, 4, 1, 2, 3});
  first(x);
  first->kernel().assign(last->kernel());
  testing_support::expect_same_bits(first(x), expected);
  EXPECT_EQ(first(layers::input({.shape = {3, kUnknown, 5, 6}})).shape(),
            Shape({kUnknown, 2, kUnknown, 4, 5}));
}

TEST(Conv2DTest, RejectsIncompatibleOptionsAndInputs) {
  EXPECT_THROW(Conv2D({.filters = 1, .kernel_size = {1, 2, 3}}), ValueError);
  EXPECT_THROW(Conv2D({.filters = 1, .kernel_size = {1, 0}}), ValueError);
  EXPECT_THROW(Conv2D({.filters = 1, .kernel_size = 1, .padding = "causal"}), ValueError);
  EXPECT_THROW(Conv2D({.filters = 1, .kernel_size = 2, .strides = {2, 1}, .dilation_rate = {1, 2}}),
               ValueError);
  EXPECT_THROW(Conv2D({.filters = 1, .kernel_size = 3})(Tensor::zeros({1, 3, 2, 1})), ValueError);
  EXPECT_THROW(Conv2D({.filters = 1, .kernel_size = 3})(Tensor::zeros({1, 3, 3})), ValueError);
}

TEST(Conv2DTest, GradientsMatchFiniteDifferences) {
  const Tensor x = testing_support::distinct_doubles({2, 4, 4, 2});
  for (const char* activation : {"relu", "tanh"}) {
    testing_support::expect_gradients_are_slopes(Conv2D({.filters = 2,
                                                         .kernel_size = {3, 2},
                                                         .strides = {2, 1},
                                                         .padding = "same",
                                                         .activation = activation,
                                                         .dtype = DType::kFloat64}),
                                                 x);
  }
}

TEST(Conv3DTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(Conv3D({.filters = 2,
                                                       .kernel_size = {2, 1, 2},
                                                       .data_format = "channels_first",
                                                       .groups = 2,
                                                       .dtype = DType::kFloat64}),
                                               testing_support::distinct_doubles({1, 2, 3, 2, 4}));
}

TEST(Conv1DTest, MeetsTheContractOfLayers) {
  expect_layer_contract(
      {.class_name = "Conv1D",
       .config = R"({"filters": 4, "kernel_size": [2], "strides": 2, "padding": "same"})",
       .inputs = float_spec({2, 5, 3}),
       .output = float_spec({2, 3, 4}),
       .trainable_weights = 2,
       .weights = 2});
  expect_layer_contract(
      {.class_name = "Conv2D",
       .config = R"({"filters": 4, "kernel_size": [2, 3], "strides": [2, 1], "padding": "same"})",
       .inputs = float_spec({2, 5, 4, 3}),
       .output = float_spec({2, 3, 4, 4}),
       .trainable_weights = 2,
       .weights = 2});
  expect_layer_contract(
      {.class_name = "Conv3D",
       .config = R"({"filters": 4, "kernel_size": 2, "groups": 2, "use_bias": false})",
       .inputs = float_spec({2, 3, 4, 5, 2}),
       .output = float_spec({2, 2, 3, 4, 4}),
       .trainable_weights = 1,
       .weights = 1});
}

}  // namespace keel::conv_test
