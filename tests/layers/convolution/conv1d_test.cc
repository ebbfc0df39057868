#include <keel/layers/convolution/conv1d.h>

#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

#include "tests/layers/gradient_check.h"

namespace keel::conv1d_test {

using layers::Conv1D;
using Floats = std::vector<float>;

Tensor sequence(const Floats& values) {
  return Tensor::from(values, {1, static_cast<int64_t>(values.size()), 1});
}

// A filter of ones computes sums of windows.
Floats sums(Conv1DOptions options, const Floats& x) {
  options.filters = 1;
  options.kernel_initializer = "ones";
  const Conv1D conv(options);
  return conv(sequence(x)).to_vector<float>();
}

TEST(Conv1DTest, PaddingSaysWhereWindowsStand) {
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

TEST(Conv1DTest, RunsInGraphsOfUnknownSteps) {
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

TEST(Conv1DTest, RefusesOptionsThatDoNotFit) {
  EXPECT_THROW(Conv1D({.filters = 0, .kernel_size = 1}), ValueError);
  EXPECT_THROW(Conv1D({.filters = 1}), ValueError);
  EXPECT_THROW(Conv1D({.filters = 3, .kernel_size = 1, .groups = 2}), ValueError);
  EXPECT_THROW(
      Conv1D(
          {.filters = 1, .kernel_size = 1, .padding = "causal", .data_format = "channels_first"}),
      ValueError);
}

TEST(Conv1DTest, RefusesInputsThatDoNotFit) {
  const Conv1D conv({.filters = 2, .kernel_size = 3, .groups = 2});
  EXPECT_THROW(conv(Tensor::zeros({2, 3})), ValueError);
  EXPECT_THROW(conv(Tensor::zeros({2, 4, 3})), ValueError);
  EXPECT_THROW(conv(layers::input({.shape = {4, kUnknown}})), ValueError);
  conv(Tensor::zeros({2, 4, 2}));
  EXPECT_THROW(conv(Tensor::zeros({2, 2, 2})), ValueError);
  EXPECT_THROW(conv(Tensor::zeros({2, 4, 4})), ValueError);
}

TEST(Conv1DTest, GradientsAreSlopes) {
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

}  // namespace keel::conv1d_test
