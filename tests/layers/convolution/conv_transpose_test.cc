#include <keel/layers/convolution/conv_transpose.h>

#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/expectations.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::conv_transpose_test {

using layers::Conv1DTranspose;
using layers::Conv2DTranspose;
using layers::Conv3DTranspose;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using Floats = std::vector<float>;

// A filter of ones adds each step to the outputs under it.
Floats spread(Conv1DTransposeOptions options, const Floats& x) {
  options.filters = 1;
  options.kernel_initializer = "ones";
  return Conv1DTranspose(options)(testing_support::sequence(x)).to_vector<float>();
}

TEST(Conv1DTransposeTest, StepsAddToTheOutputsUnderThem) {
  const Floats x = {1, 2, 3};
  EXPECT_EQ(spread({.kernel_size = 2}, x), Floats({1, 3, 5, 3}));
  EXPECT_EQ(spread({.kernel_size = 2, .strides = 2}, x), Floats({1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(spread({.kernel_size = 2, .dilation_rate = 2}, x), Floats({1, 2, 4, 2, 3}));
  EXPECT_EQ(spread({.kernel_size = 1, .strides = 2}, x), Floats({1, 0, 2, 0, 3, 0}));
}

TEST(Conv1DTransposeTest, PaddingDeterminesTheNumberOfOutputs) {
  const Floats x = {1, 2, 3};
  EXPECT_EQ(spread({.kernel_size = 3, .padding = "same"}, x), Floats({3, 6, 5}));
  EXPECT_EQ(spread({.kernel_size = 3, .strides = 2, .padding = "same"}, x),
            Floats({1, 1, 3, 2, 5, 3}));
  EXPECT_EQ(spread({.kernel_size = 2, .strides = 2, .output_padding = 1}, x),
            Floats({1, 1, 2, 2, 3, 3, 0}));
  EXPECT_EQ(spread({.kernel_size = 3, .strides = 2, .padding = "same", .output_padding = 0}, x),
            Floats({1, 3, 2, 5, 3}));
}

TEST(Conv2DTransposeTest, AxesHaveTheirOwnSizes) {
  const Conv2DTranspose layer({.filters = 4,
                               .kernel_size = {2, 3},
                               .strides = {3, 2},
                               .output_padding = {{0, 1}},
                               .data_format = "channels_first"});
  EXPECT_EQ(layer(layers::input({.shape = {5, kUnknown, 3}})).shape(),
            Shape({kUnknown, 4, kUnknown, 8}));
  EXPECT_EQ(layer->kernel().shape(), Shape({2, 3, 4, 5}));
  EXPECT_EQ(layer->bias().shape(), Shape({4}));
  EXPECT_EQ(layer(Tensor::zeros({2, 5, 3, 3})).shape(), Shape({2, 4, 8, 8}));
  EXPECT_EQ(to_json(layer->get_config()["output_padding"]), "[0, 1]");
}

// Transposed convolutions over axes of size 1 are those with fewer axes.
TEST(Conv3DTransposeTest, ContainsTransposedConvolutionsOverFewerAxes) {
  const Tensor x = testing_support::normal({2, 3, 4, 3}, 1);
  const Conv2DTranspose flat({.filters = 2, .kernel_size = 3, .strides = {2, 1}});
  const Conv3DTranspose deep({.filters = 2, .kernel_size = {3, 1, 3}, .strides = {2, 1, 1}});
  const Tensor expected = flat(x);
  const Tensor volume = x.reshaped({2, 3, 1, 4, 3});
  deep(volume);
  deep->kernel().assign(ops::reshape(flat->kernel(), {3, 1, 3, 2, 3}));
  testing_support::expect_same_bits(deep(volume).reshaped(expected.shape()), expected);
}

TEST(Conv2DTransposeTest, RejectsIncompatibleOptionsAndInputs) {
  EXPECT_THROW(Conv2DTranspose({.filters = 0, .kernel_size = 1}), ValueError);
  EXPECT_THROW(Conv2DTranspose({.filters = 1}), ValueError);
  EXPECT_THROW(Conv2DTranspose({.filters = 1, .kernel_size = 1, .padding = "causal"}), ValueError);
  EXPECT_THROW(Conv2DTranspose({.filters = 1, .kernel_size = 1, .output_padding = -1}), ValueError);
  EXPECT_THROW(Conv2DTranspose({.filters = 1, .kernel_size = 2, .strides = 2, .dilation_rate = 2}),
               ValueError);
  const Conv2DTranspose layer({.filters = 1, .kernel_size = 2});
  EXPECT_THROW(layer(Tensor::zeros({1, 2, 2})), ValueError);
  layer(Tensor::zeros({1, 2, 2, 3}));
  EXPECT_THROW(layer(Tensor::zeros({1, 2, 2, 4})), ValueError);
}

TEST(Conv2DTransposeTest, GradientsMatchFiniteDifferences) {
  for (const char* padding : {"valid", "same"}) {
    testing_support::expect_gradients_are_slopes(Conv2DTranspose({.filters = 2,
                                                                  .kernel_size = {3, 2},
                                                                  .strides = 2,
                                                                  .padding = padding,
                                                                  .activation = "tanh",
                                                                  .dtype = DType::kFloat64}),
                                                 testing_support::distinct_doubles({2, 2, 3, 2}));
  }
}

TEST(Conv1DTransposeTest, MeetsTheContractOfLayers) {
  expect_layer_contract(
      {.class_name = "Conv1DTranspose",
       .config = R"({"filters": 4, "kernel_size": [2], "strides": 2, "output_padding": [1]})",
       .inputs = float_spec({2, 5, 3}),
       .output = float_spec({2, 11, 4}),
       .trainable_weights = 2,
       .weights = 2});
  expect_layer_contract(
      {.class_name = "Conv2DTranspose",
       .config = R"({"filters": 4, "kernel_size": 3, "strides": 2, "padding": "same"})",
       .inputs = float_spec({2, 5, 4, 3}),
       .output = float_spec({2, 10, 8, 4}),
       .trainable_weights = 2,
       .weights = 2});
  expect_layer_contract(
      {.class_name = "Conv3DTranspose",
       .config = R"({"filters": 2, "kernel_size": 2, "data_format": "channels_first"})",
       .inputs = float_spec({2, 3, 4, 5, 2}),
       .output = float_spec({2, 2, 5, 6, 3}),
       .trainable_weights = 2,
       .weights = 2});
}

}  // namespace keel::conv_transpose_test
