#include <keel/layers/recurrent/conv_lstm.h>

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/recurrent/lstm.h>
#include <keel/layers/registry.h>
#include <keel/layers/wrappers/wrappers.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::conv_lstm_test {

using layers::ConvLSTM1D;
using layers::ConvLSTM2D;
using layers::ConvLSTM3D;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::expect_layer_contract;
using testing_support::expect_near;
using testing_support::expect_same_bits;
using testing_support::float_spec;
using testing_support::message_of;
using testing_support::normal;
using testing_support::with_mask;
using Floats = std::vector<float>;

// Over windows of one pixel, each pixel is a sequence of its own.
TEST(ConvLSTMTest, WithWindowsOfOnePixelIsAnLSTMOfEachPixel) {
  const ConvLSTM2D conv({.filters = 3, .kernel_size = 1, .return_sequences = true});
  const layers::LSTM lstm({.units = 3, .return_sequences = true});
  const Tensor x = normal({2, 4, 3, 2, 5}, 1);  // [batch, steps, height, width, channels]
  const Tensor pixels =
      ops::reshape(ops::transpose(x, {0, 2, 3, 1, 4}), {12, 4, 5});  // [pixels, steps, channels]
  conv(x);
  lstm(pixels);
  for (size_t i = 0; i < 3; ++i) {
    const Variable to = lstm->weights()[i];
    to.assign(ops::reshape(conv->weights()[i], to.shape()));
  }
  const Tensor expected =
      ops::transpose(ops::reshape(lstm(pixels), {2, 3, 2, 4, 3}), {0, 3, 1, 2, 4});
  expect_near(conv(x), expected, {.absolute = 1e-6});
}

// With constant weights, the gates of a pixel depend on the sum over its window.
TEST(ConvLSTMTest, MatchesItsFormula) {
  const ConvLSTM1D layer({.filters = 1,
                          .kernel_size = 2,
                          .padding = "same",
                          .activation = "linear",
                          .kernel_initializer = initializers::constant(0.1),
                          .recurrent_initializer = initializers::constant(0.2),
                          .unit_forget_bias = true,
                          .return_sequences = true,
                          .return_state = true});
  const Tensors result = layer(Tensors(Tensor::from<float>({1, 2, 3, 4, 5, 6}, {1, 2, 3, 1})));
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const std::vector<std::vector<double>> x = {{1, 2, 3}, {4, 5, 6}};
  std::vector<double> h(3, 0), c(3, 0);
  for (int t = 0; t < 2; ++t) {
    std::vector<double> next(3);
    for (int i = 0; i < 3; ++i) {
      // "same" padding of a window of two adds a zero after the last pixel.
      const double sum =
          0.1 * (x[t][i] + (i < 2 ? x[t][i + 1] : 0)) + 0.2 * (h[i] + (i < 2 ? h[i + 1] : 0));
      c[i] = sigmoid(sum + 1) * c[i] + sigmoid(sum) * sum;
      next[i] = sigmoid(sum) * c[i];
    }
    h = next;
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(result[0].tensor().data<float>()[t * 3 + i], h[i], 1e-6);
    }
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(result[1].tensor().data<float>()[i], h[i], 1e-6);
    EXPECT_NEAR(result[2].tensor().data<float>()[i], c[i], 1e-6);
  }
}

TEST(ConvLSTMTest, ChannelsFirstIsATransposition) {
  const ConvLSTM2DOptions options = {
      .filters = 2, .kernel_size = {2, 3}, .strides = {1, 2}, .return_state = true};
  ConvLSTM2DOptions first_options = options;
  first_options.data_format = "channels_first";
  const ConvLSTM2D last(options), first(first_options);
  const Tensor x = normal({2, 3, 4, 5, 2}, 1);
  const Tensor y = ops::transpose(x, {0, 1, 4, 2, 3});
  const Tensors expected = last(Tensors(x));
  first(Tensors(y));
  for (size_t i = 0; i < 3; ++i) first->weights()[i].assign(last->weights()[i].read());
  const Tensors result = first(Tensors(y));
  for (int i = 0; i < 3; ++i) {
    expect_same_bits(ops::transpose(result[i].tensor(), {0, 2, 3, 1}), expected[i].tensor());
  }
}

TEST(ConvLSTMTest, WeightsAreThoseOfKeras) {
  const ConvLSTM3D layer({.filters = 2, .kernel_size = {1, 2, 3}, .name = "volumes"});
  layer(Tensor::zeros({1, 2, 3, 3, 3, 4}));
  std::vector<std::string> weights;
  for (const Variable& weight : layer->weights()) {
    weights.push_back(weight.path() + " " + str(weight.shape()));
  }
  EXPECT_THAT(weights, ElementsAre("volumes/conv_lstm_cell/kernel (1, 2, 3, 4, 8)",
                                   "volumes/conv_lstm_cell/recurrent_kernel (1, 2, 3, 2, 8)",
                                   "volumes/conv_lstm_cell/bias (8,)"));
  EXPECT_EQ(layer->weights()[2].read().to_vector<float>(), Floats({0, 0, 1, 1, 0, 0, 0, 0}));
}

TEST(ConvLSTMTest, MaskedStepsAreSkipped) {
  const ConvLSTM1D layer({.filters = 2, .kernel_size = 2});
  const Tensor x = normal({2, 3, 4, 2}, 1);
  const Tensor y = layer(with_mask(x, {true, false, true, true, true, false}));
  const Tensor first = ops::concat({ops::slice(x, 1, 0, 1), ops::slice(x, 1, 2, 1)}, 1);
  expect_near(ops::slice(y, 0, 0, 1), ops::slice(layer(first), 0, 0, 1), {.absolute = 1e-6});
  expect_near(ops::slice(y, 0, 1, 1), ops::slice(layer(ops::slice(x, 1, 0, 2)), 0, 1, 1),
              {.absolute = 1e-6});
}

TEST(ConvLSTMTest, StatefulContinuesAndStatesCanBeGiven) {
  const ConvLSTM1D whole({.filters = 2, .kernel_size = 2, .return_state = true});
  const Tensor x = normal({2, 4, 3, 2}, 1);
  const Tensors expected = whole(Tensors(x));
  const Tensors half = whole(Tensors(ops::slice(x, 1, 0, 2)));
  const Tensors rest = whole(Tensors(ops::slice(x, 1, 2, 2)),
                             {.initial_state = {half[1].tensor(), half[2].tensor()}});
  expect_near(rest[0].tensor(), expected[0].tensor(), {.absolute = 1e-6});
  const ConvLSTM1D stateful({.filters = 2, .kernel_size = 2, .stateful = true});
  stateful->build(float_spec({2, 2, 3, 2}));
  for (size_t i = 0; i < 3; ++i) stateful->weights()[i].assign(whole->weights()[i].read());
  stateful(ops::slice(x, 1, 0, 2));
  expect_near(stateful(ops::slice(x, 1, 2, 2)), expected[0].tensor(), {.absolute = 1e-6});
}

TEST(ConvLSTMTest, DropoutsApplyInTrainingOnlyAndToAllSteps) {
  ConvLSTM1DOptions options = {.filters = 2, .kernel_size = 2, .dropout = 0.5, .seed = 3};
  const Tensor x = normal({2, 3, 4, 2}, 1);
  for (const bool recurrent : {false, true}) {
    if (recurrent) std::swap(options.dropout, options.recurrent_dropout);
    const ConvLSTM1D layer(options);
    const Tensor y = layer(x);
    expect_same_bits(layer(x), y);
    EXPECT_NE(layer(x, {.training = true}).to_vector<float>(), y.to_vector<float>());
  }
  // A mask of a gate drops a position in all steps: the input gate of a kernel of zeros elsewhere.
  const ConvLSTM1D linear({.filters = 1,
                           .kernel_size = 1,
                           .activation = "linear",
                           .recurrent_activation = "linear",
                           .kernel_initializer = "ones",
                           .recurrent_initializer = "zeros",
                           .unit_forget_bias = false,
                           .dropout = 0.5,
                           .seed = 1,
                           .return_sequences = true});
  const Tensor z = linear(Tensor::full<float>({1, 2, 64, 1}, 1), {.training = true});
  // h_1 = o i g, h_2 = o (f i g + i g): both are zero where a mask of o, i or g is.
  const Floats values = z.to_vector<float>();
  int kept = 0;
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(values[i] == 0, values[64 + i] == 0);
    kept += values[i] != 0 ? 1 : 0;
  }
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 30);
}

TEST(ConvLSTMTest, RunsInGraphsAndInBothDirections) {
  const Tensor x = layers::input({.shape = {kUnknown, 4, 4, 1}});
  const ConvLSTM2D layer({.filters = 2, .kernel_size = 3, .return_sequences = true});
  const Tensor y = layers::Bidirectional({.layer = layer})(x);
  EXPECT_EQ(y.shape(), Shape({kUnknown, kUnknown, 2, 2, 4}));
  const Functional model({.inputs = x, .outputs = y});
  EXPECT_EQ(model(normal({2, 3, 4, 4, 1}, 1)).shape(), Shape({2, 3, 2, 2, 4}));
}

TEST(ConvLSTMTest, RejectsInvalidOptionsAndInputs) {
  EXPECT_THROW(ConvLSTM1D({.kernel_size = 2}), ValueError);
  EXPECT_THROW(ConvLSTM1D({.filters = 2}), ValueError);
  EXPECT_THROW(ConvLSTM1D({.filters = 2, .kernel_size = 2, .padding = "causal"}), ValueError);
  EXPECT_THROW(ConvLSTM1D({.filters = 2, .kernel_size = 2, .strides = 2, .dilation_rate = 2}),
               ValueError);
  EXPECT_THAT(message_of<ValueError>([] {
                ConvLSTM1D({.filters = 2, .kernel_size = 2, .dropout = 1.5, .name = "c"});
              }),
              HasSubstr("ConvLSTM1D c: dropout"));
  const ConvLSTM1D layer({.filters = 2, .kernel_size = 2});
  EXPECT_THROW(layer(Tensor::zeros({1, 2, 3})), ValueError);
  EXPECT_THROW(layer(Tensor::zeros({1, 2, 1, 3})), ValueError);
  layer(Tensor::zeros({1, 2, 4, 3}));
  EXPECT_THROW(layer(Tensor::zeros({1, 2, 4, 2})), ValueError);
}

TEST(ConvLSTMTest, GradientsMatchFiniteDifferences) {
  const ConvLSTM1D layer({.filters = 2,
                          .kernel_size = 2,
                          .padding = "same",
                          .return_sequences = true,
                          .dtype = DType::kFloat64});
  testing_support::expect_gradients_are_slopes(layer,
                                               testing_support::distinct_doubles({1, 2, 3, 2}));
}

TEST(ConvLSTMTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "ConvLSTM1D",
                         .config = R"({"filters": 3, "kernel_size": [2], "return_sequences": true,
                                       "data_format": "channels_first"})",
                         .inputs = float_spec({2, 2, 3, 5}),
                         .output = float_spec({2, 2, 3, 4}),
                         .trainable_weights = 3,
                         .weights = 3});
  expect_layer_contract({.class_name = "ConvLSTM2D",
                         .config = R"({"filters": 3, "kernel_size": [2, 1], "strides": [1, 2],
                                       "use_bias": false})",
                         .inputs = float_spec({2, 2, 3, 4, 2}),
                         .output = float_spec({2, 2, 2, 3}),
                         .trainable_weights = 2,
                         .weights = 2});
  expect_layer_contract({.class_name = "ConvLSTM3D",
                         .config = R"({"filters": 1, "kernel_size": [2, 2, 2], "padding": "same",
                                       "recurrent_activation": "hard_sigmoid"})",
                         .inputs = float_spec({2, 2, 2, 3, 2, 2}),
                         .output = float_spec({2, 2, 3, 2, 1}),
                         .trainable_weights = 3,
                         .weights = 3});
}

}  // namespace keel::conv_lstm_test
