// Tests savedmodel/keras/internal/legacy_arrays.cc, with files in the form of Keras 1 and of
// Theano.
#include <keel/savedmodel/keras/dialect/keras1_dialect.h>

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/convolution/conv.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/savedmodel/keras/legacy_file.h"
#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::keras1_dialect_test {

using testing::HasSubstr;
using testing_support::expect_near;
using testing_support::floats;
using testing_support::message_of;
using testing_support::normal;
using testing_support::StoredLayer;
using testing_support::StoredModel;
using testing_support::TemporaryFolder;
using testing_support::values_of;
using testing_support::write;
using Floats = std::vector<float>;

std::string sequential(const std::string& layers) {
  return R"({"class_name": "Sequential", "config": [)" + layers + "]}";
}

// The config of a Convolution2D of Keras 1.2 with 2 filters of 3 x 2, as the first layer.
std::string convolution(const std::string& dim_ordering, const std::string& shape,
                        const std::string& border_mode = "valid") {
  return R"({"class_name": "Convolution2D", "config": {"name": "convolution2d_1",
      "trainable": true, "batch_input_shape": )" +
         shape + R"(, "input_dtype": "float32", "nb_filter": 2, "nb_row": 3, "nb_col": 2,
      "init": "glorot_uniform", "activation": "linear", "border_mode": ")" +
         border_mode + R"(", "subsample": [1, 2], "dim_ordering": ")" + dim_ordering + R"(",
      "W_regularizer": {"name": "WeightRegularizer", "l1": 0.0, "l2": 0.01},
      "b_regularizer": null, "activity_regularizer": null,
      "W_constraint": {"name": "MaxNorm", "m": 2, "axis": 0}, "b_constraint": null,
      "bias": true}})";
}

// Slides windows of a kernel (rows, columns, inputs, filters) with strides 1 and 2 over x (rows,
// columns, inputs), and adds the bias.
Floats slide(const Tensor& x, const Tensor& kernel, const Floats& bias, bool flipped) {
  const Floats in = x.to_vector<float>(), k = kernel.to_vector<float>();
  const int64_t height = x.shape()[0], width = x.shape()[1], channels = x.shape()[2];
  const int64_t rows = kernel.shape()[0], columns = kernel.shape()[1], filters = kernel.shape()[3];
  Floats out;
  for (int64_t i = 0; i + rows <= height; ++i) {
    for (int64_t j = 0; j + columns <= width; j += 2) {
      for (int64_t f = 0; f < filters; ++f) {
        double sum = bias[f];
        for (int64_t a = 0; a < rows; ++a) {
          for (int64_t b = 0; b < columns; ++b) {
            for (int64_t c = 0; c < channels; ++c) {
              const int64_t ka = flipped ? rows - 1 - a : a, kb = flipped ? columns - 1 - b : b;
              sum += double{in[((i + a) * width + j + b) * channels + c]} *
                     k[((ka * columns + kb) * channels + c) * filters + f];
            }
          }
        }
        out.push_back(static_cast<float>(sum));
      }
    }
  }
  return out;
}

// Returns the tensor with its axes in another order.
Tensor permuted(const Tensor& x, const std::vector<int>& axes) {
  std::vector<int64_t> dims;
  for (const int axis : axes) dims.push_back(x.shape()[axis]);
  const Floats in = x.to_vector<float>();
  Floats out(in.size());
  for (int64_t i = 0; i < std::ssize(out); ++i) {
    int64_t rest = i, from = 0;
    for (int d = static_cast<int>(axes.size()) - 1; d >= 0; --d) {
      int64_t stride = 1;
      for (int e = axes[d] + 1; e < x.rank(); ++e) stride *= x.shape()[e];
      from += rest % dims[d] * stride;
      rest /= dims[d];
    }
    out[i] = in[from];
  }
  return floats(out, Shape(dims));
}

class Keras1Convolutions : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

// Keras 1 stores kernels for "tf" as [rows, columns, inputs, filters] and for "th" as [filters,
// inputs, rows, columns]. Theano convolves, TensorFlow correlates.
TEST_P(Keras1Convolutions, HaveTheKernelsOfTheirBackend) {
  const auto [ordering, backend] = GetParam();
  const bool first = std::string(ordering) == "th";
  const TemporaryFolder folder;
  const Tensor x = normal({5, 4, 3}, 1), kernel = normal({3, 2, 3, 2}, 2);
  const Floats bias = {.5F, -2};
  write(folder / "a.h5",
        {.version = "1.2.2",
         .config = sequential(convolution(ordering, first ? "[null, 3, 5, 4]" : "[null, 5, 4, 3]")),
         .layers = {{"convolution2d_1",
                     {{"convolution2d_1_W", first ? permuted(kernel, {3, 2, 0, 1}) : kernel},
                      {"convolution2d_1_b", floats(bias, {2})}}}},
         .backend = backend});
  const ModelHandle model = load_model(folder / "a.h5");
  const Tensor batch = first ? permuted(x, {2, 0, 1}) : x;
  const Tensor y = model(batch.reshaped(Shape{1} + batch.shape()));
  const Tensor last = first ? permuted(y.reshaped({2, 3, 2}), {1, 2, 0}) : y;
  expect_near(values_of(last), slide(x, kernel, bias, std::string(backend) == "theano"),
              {.absolute = 1e-5});
  const Config config = model->layers()[0]->get_config();
  EXPECT_EQ(config["kernel_regularizer"]["config"]["l2"].number(), 0.01);
  EXPECT_EQ(config["kernel_constraint"]["config"]["max_value"].number(), 2);
}

INSTANTIATE_TEST_SUITE_P(Backends, Keras1Convolutions,
                         testing::Combine(testing::Values("tf", "th"),
                                          testing::Values("", "theano", "tensorflow")));

TEST(Keras1DialectTest, KernelsOfTheanoInFilesOfKeras2AreFlipped) {
  const TemporaryFolder folder;
  const Tensor x = normal({5, 4, 3}, 1), kernel = normal({3, 2, 3, 2}, 2);
  write(folder / "a.h5",
        {.version = "2.1.3",
         .config = sequential(R"({"class_name": "Conv2D", "config": {"name": "c", "filters": 2,
            "batch_input_shape": [null, 5, 4, 3], "kernel_size": [3, 2], "strides": [1, 2],
            "padding": "valid", "data_format": "channels_last", "activation": "linear",
            "use_bias": false}})"),
         .layers = {{"c", {{"c/kernel:0", kernel}}}},
         .backend = "theano"});
  expect_near(values_of(load_model(folder / "a.h5")(x.reshaped({1, 5, 4, 3}))),
              slide(x, kernel, {0, 0}, true), {.absolute = 1e-5});
}

// Keras 1.2 stores kernels of Convolution1D as [window, 1, inputs, filters], Keras 1.1 as [filters,
// inputs, window, 1].
TEST(Keras1DialectTest, ConvolutionsOfSequencesAreRead) {
  const TemporaryFolder folder;
  const Tensor kernel = normal({2, 3, 4}, 3), x = normal({1, 5, 3}, 4);
  const layers::Conv1D expected({.filters = 4, .kernel_size = 2, .strides = 2, .use_bias = false});
  expected->build(Specs(x.spec()));
  expected->kernel().assign(kernel);
  const std::string config = sequential(
      R"({"class_name": "Convolution1D", "config": {"name": "c", "nb_filter": 4,
       "batch_input_shape": [null, 5, 3], "input_dtype": "float32", "input_dim": 3,
       "input_length": 5, "filter_length": 2, "init": "uniform", "activation": "linear",
       "border_mode": "valid", "subsample_length": 2, "W_regularizer": null,
       "b_regularizer": null, "activity_regularizer": null, "W_constraint": null,
       "b_constraint": null, "bias": false}})");
  for (const Tensor& stored :
       {kernel.reshaped({2, 1, 3, 4}), permuted(kernel, {2, 1, 0}).reshaped({4, 3, 2, 1})}) {
    write(folder / "a.h5", {.version = "1.1.0",
                            .config = config,
                            .layers = {{"c", {{"c_W", stored}}}},
                            .backend = ""});
    EXPECT_EQ(values_of(load_model(folder / "a.h5")(x)), values_of(expected(x)));
  }
}

// One unit, with zero recurrent weights: c = i g, h = o tanh(c), where i = hs(1 x + .1), g = tanh(2
// x + .2), f = hs(3 x + .3) and o = hs(4 x + .4), and hs(x) = 0.2 x + 0.5 in [0, 1]. A second step
// shows the forget gate. Keras 1 stores the gates i, c, f and o.
TEST(Keras1DialectTest, AnLstmOfTwelveArraysIsRead) {
  const TemporaryFolder folder;
  StoredLayer layer{.name = "lstm_1"};
  for (const auto& [gate, w, b] : {std::tuple("i", 1.0F, .1F), std::tuple("c", 2.0F, .2F),
                                   std::tuple("f", 3.0F, .3F), std::tuple("o", 4.0F, .4F)}) {
    layer.weights.emplace_back(str("lstm_1_W_", gate), floats({w}, {1, 1}));
    layer.weights.emplace_back(str("lstm_1_U_", gate), floats({0}, {1, 1}));
    layer.weights.emplace_back(str("lstm_1_b_", gate), floats({b}, {1}));
  }
  const std::string config = R"({"class_name": "LSTM", "config": {"name": "lstm_1",
      "trainable": true, "batch_input_shape": [null, 2, 1], "input_dtype": "float32",
      "output_dim": 1, "init": "glorot_uniform", "inner_init": "orthogonal",
      "forget_bias_init": "one", "activation": "tanh", "inner_activation": "hard_sigmoid",
      "W_regularizer": null, "U_regularizer": null, "b_regularizer": null, "dropout_W": 0.5,
      "dropout_U": 0.25, "return_sequences": false, "go_backwards": false, "stateful": false,
      "unroll": false, "consume_less": "cpu", "input_dim": 1, "input_length": 2}})";
  write(folder / "a.h5",
        {.version = "1.2.2", .config = sequential(config), .layers = {layer}, .backend = ""});
  const auto hs = [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); };
  const double a = .3, b = -.2;
  double c = hs(a + .1) * std::tanh(2 * a + .2);
  c = hs(3 * b + .3) * c + hs(b + .1) * std::tanh(2 * b + .2);
  const ModelHandle model = load_model(folder / "a.h5");
  expect_near(values_of(model(floats({.3F, -.2F}, {1, 2, 1}))),
              {static_cast<float>(hs(4 * b + .4) * std::tanh(c))}, {.absolute = 2e-6});
  const Config read = model->layers()[0]->get_config();
  EXPECT_EQ(read["dropout"].number(), 0.5);
  EXPECT_EQ(read["recurrent_dropout"].number(), 0.25);
  EXPECT_TRUE(read["unit_forget_bias"].boolean());
}

// The same weights with and without one array for each gate.
TEST(Keras1DialectTest, AGruOfNineArraysInBidirectionalIsRead) {
  const TemporaryFolder folder;
  const std::string config =
      R"({"class_name": "Bidirectional", "config": {"name": "b", "merge_mode": "concat",
       "batch_input_shape": [null, 3, 2], "input_dtype": "float32",
       "layer": {"class_name": "GRU", "config": {"name": "gru_1", "output_dim": 2,
        "init": "glorot_uniform", "inner_init": "orthogonal", "activation": "tanh",
        "inner_activation": "sigmoid", "W_regularizer": null, "U_regularizer": null,
        "b_regularizer": null, "dropout_W": 0.0, "dropout_U": 0.0, "return_sequences": true,
        "go_backwards": false, "stateful": false, "unroll": false, "consume_less": "mem",
        "input_dim": 2, "input_length": null}}}})";
  StoredLayer joined{.name = "b"}, by_gate{.name = "b"};
  for (int direction = 0; direction < 2; ++direction) {
    const Tensor kernel = normal({2, 6}, 10 + direction), inner = normal({2, 6}, 20 + direction);
    const Tensor bias = normal({6}, 30 + direction);
    const std::string name = direction == 0 ? "forward_gru_1" : "backward_gru_1";
    joined.weights.insert(joined.weights.end(),
                          {{name + "_W", kernel}, {name + "_U", inner}, {name + "_b", bias}});
    for (int64_t gate = 0; gate < 3; ++gate) {
      const auto part = [&](const Tensor& all) {
        const Floats values = all.to_vector<float>();
        Floats out;
        for (int64_t i = 0; i < std::ssize(values); ++i) {
          if (i % 6 / 2 == gate) out.push_back(values[i]);
        }
        return all.rank() == 1 ? floats(out, {2}) : floats(out, {2, 2});
      };
      by_gate.weights.emplace_back(str(name, "_W_", gate), part(kernel));
      by_gate.weights.emplace_back(str(name, "_U_", gate), part(inner));
      by_gate.weights.emplace_back(str(name, "_b_", gate), part(bias));
    }
  }
  const Tensor x = normal({2, 3, 2}, 5);
  std::vector<Floats> found;
  for (const StoredLayer& layer : {joined, by_gate}) {
    write(folder / "a.h5",
          {.version = "1.0.7", .config = sequential(config), .layers = {layer}, .backend = ""});
    found.push_back(values_of(load_model(folder / "a.h5")(x)));
  }
  ASSERT_EQ(found[0].size(), 24U);
  EXPECT_EQ(found[0], found[1]);
}

std::string dense(const std::string& name, int units, const std::string& first = "") {
  return R"({"class_name": "Dense", "config": {"name": ")" + name + R"(", "trainable": true, )" +
         first + R"("output_dim": )" + std::to_string(units) +
         R"(, "init": "glorot_uniform", "activation": "linear", "W_regularizer": null,
      "b_regularizer": null, "activity_regularizer": null, "W_constraint": null,
      "b_constraint": null, "bias": false, "input_dim": 1}})";
}

std::string merge(const std::string& mode, const std::string& more = "") {
  return R"({"class_name": "Merge", "config": {"name": "merge_1", "mode": ")" + mode + R"(",
      "mode_type": "raw", "concat_axis": -1, "dot_axes": -1, "output_shape": null,
      "output_shape_type": "raw", "output_mask": null, "output_mask_type": "raw",
      "arguments": {})" +
         more + "}}";
}

// The models are listed one after the other in the file; the graph lists layers by their depth.
TEST(Keras1DialectTest, ASequentialOfMergedModelsIsAGraph) {
  const TemporaryFolder folder;
  const std::string one = R"("batch_input_shape": [null, 1], "input_dtype": "float32", )";
  const std::string branches = R"(, "layers": [)" +
                               sequential(dense("a", 1, one) + ", " + dense("b", 1)) + ", " +
                               sequential(dense("c", 1, one)) + "]";
  write(folder / "a.h5", {.version = "1.2.1",
                          .config = sequential(merge("concat", branches) + ", " + dense("d", 1)),
                          .layers = {{"a", {{"a_W", floats({2}, {1, 1})}}},
                                     {"b", {{"b_W", floats({3}, {1, 1})}}},
                                     {"c", {{"c_W", floats({5}, {1, 1})}}},
                                     {"merge_1"},
                                     {"d", {{"d_W", floats({1, 10}, {2, 1})}}}},
                          .backend = ""});
  const ModelHandle model = load_model(folder / "a.h5");
  const Tensors inputs =
      Tensors::list({Tensors(floats({1, 2}, {2, 1})), Tensors(floats({3, 4}, {2, 1}))});
  EXPECT_EQ(values_of(model(inputs)), (Floats{6 + 150, 12 + 200}));
}

TEST(Keras1DialectTest, MergeComputesWhatItsModeNames) {
  const TemporaryFolder folder;
  const auto model_of = [&](const std::string& mode) {
    const std::string layer = merge(mode);
    write(folder / "a.h5", {.version = "1.2.2",
                            .config = R"({"class_name": "Model", "config": {"name": "m", "layers": [
        {"class_name": "InputLayer", "name": "x", "config": {"name": "x",
         "batch_input_shape": [null, 2], "input_dtype": "float32", "sparse": false},
         "inbound_nodes": []},
        {"class_name": "InputLayer", "name": "y", "config": {"name": "y",
         "batch_input_shape": [null, 2], "input_dtype": "float32", "sparse": false},
         "inbound_nodes": []}, )" + layer.substr(0, layer.size() - 1) +
                                      R"(, "name": "merge_1",
         "inbound_nodes": [[["x", 0, 0], ["y", 0, 0]]]}],
        "input_layers": [["x", 0, 0], ["y", 0, 0]], "output_layers": [["merge_1", 0, 0]]}})",
                            .layers = {{"x"}, {"y"}, {"merge_1"}},
                            .backend = ""});
    return load_model(folder / "a.h5");
  };
  const Tensors inputs =
      Tensors::list({Tensors(floats({1, 2}, {1, 2})), Tensors(floats({5, -3}, {1, 2}))});
  const std::vector<std::pair<const char*, Floats>> cases = {
      {"sum", {6, -1}},          {"mul", {5, -6}}, {"ave", {3, -.5F}},
      {"concat", {1, 2, 5, -3}}, {"dot", {-1}},    {"max", {5, 2}}};
  for (const auto& [mode, expected] : cases) {
    EXPECT_EQ(values_of(model_of(mode)(inputs)), expected) << mode;
  }
  EXPECT_THAT(message_of<NotImplementedError>([&] { model_of("cos"); }),
              HasSubstr("Merge merge_1: 'mode' = \"cos\""));
}

// Keras 1 names slots after graph variables, so that the optimizer starts anew.
TEST(Keras1DialectTest, ACompiledModelTrainsWithFreshSlots) {
  const TemporaryFolder folder;
  const std::string one = R"("batch_input_shape": [null, 1], "input_dtype": "float32", )";
  write(folder / "a.h5",
        {.version = "1.2.2",
         .config = sequential(dense("a", 1, one)),
         .layers = {{"a", {{"a_W", floats({1}, {1, 1})}}}},
         .training = R"({"optimizer_config": {"class_name": "SGD", "config": {"lr": 0.25,
             "momentum": 0.5, "decay": 0.0, "nesterov": false}}, "loss": "mse",
             "metrics": ["accuracy"], "sample_weight_mode": null, "loss_weights": null})",
         .backend = "",
         .optimizer = {{"Variable_3:0", floats({0}, {})}, {"param_1", floats({9}, {1, 1})}}});
  const ModelHandle model = load_model(folder / "a.h5");
  ASSERT_TRUE(model->compiled());
  // The gradient of (2 w - 1)^2 is 4 for w = 1.
  model->fit(floats({2}, {1, 1}), floats({1}, {1, 1}), {.epochs = 1});
  EXPECT_EQ(model->weights()[0].read().item<float>(), 0);
}

TEST(Keras1DialectTest, OldArgumentsAreRenamed) {
  const auto read = [](const char* config) { return to_json(from_keras1(parse_json(config))); };
  EXPECT_EQ(read(R"({"class_name": "Dropout", "config": {"name": "d", "p": 0.5}})"),
            R"({"class_name": "Dropout", "config": {"name": "d", "rate": 0.5}})");
  EXPECT_EQ(read(R"({"class_name": "GaussianNoise", "config": {"name": "d", "sigma": 0.5}})"),
            R"({"class_name": "GaussianNoise", "config": {"name": "d", "stddev": 0.5}})");
  EXPECT_EQ(read(R"({"class_name": "MaxPooling1D", "config": {"name": "d", "stride": 3,
                     "pool_length": 2, "border_mode": "same"}})"),
            R"({"class_name": "MaxPooling1D", "config": {"name": "d", "strides": 3, )"
            R"("pool_size": 2, "padding": "same"}})");
  EXPECT_EQ(read(R"({"class_name": "ZeroPadding2D", "config": {"padding": [1, 2, 3, 4],
                     "dim_ordering": "th"}})"),
            R"({"class_name": "ZeroPadding2D", "config": {"padding": [[1, 2], [3, 4]], )"
            R"("data_format": "channels_first"}})");
  EXPECT_EQ(read(R"({"class_name": "Embedding", "config": {"input_dim": 3, "output_dim": 2,
                     "init": "uniform", "input_length": 4, "mask_zero": true, "dropout": 0.2,
                     "W_constraint": {"name": "NonNeg"}}})"),
            R"({"class_name": "Embedding", "config": {"input_dim": 3, "output_dim": 2, )"
            R"("embeddings_initializer": "random_uniform", "mask_zero": true, )"
            R"("embeddings_constraint": {"class_name": "NonNeg", "config": {}}}})");
  EXPECT_EQ(read(R"({"class_name": "AtrousConvolution2D", "config": {"nb_filter": 2, "nb_row": 3,
                     "nb_col": 4, "atrous_rate": [2, 2], "subsample": [1, 1]}})"),
            R"({"class_name": "Conv2D", "config": {"filters": 2, "dilation_rate": [2, 2], )"
            R"("strides": [1, 1], "kernel_size": [3, 4]}})");
}

TEST(Keras1DialectTest, ConfigsOfLaterVersionsAndOfUsersAreUnchanged) {
  for (const char* config :
       {R"({"class_name": "Embedding", "config": {"input_dim": 3, "output_dim": 2}})",
        R"({"class_name": "ReversibleEmbedding", "config": {"input_dim": 3, "output_dim": 2}})",
        R"({"class_name": "Mine>Layer", "config": {"p": 1, "bias": 2, "init": 3}})",
        R"({"class_name": "VarianceScaling", "config": {"scale": 1.0, "mode": "fan_avg"}})",
        R"({"class_name": "ZeroPadding2D", "config": {"padding": [[1, 1], [2, 2]]}})"}) {
    EXPECT_EQ(from_keras1(parse_json(config)), parse_json(config)) << config;
  }
}

TEST(Keras1DialectTest, WhatLaterVersionsCannotExpressIsRefused) {
  const auto refusal = [](const char* config) {
    return message_of<NotImplementedError>([&] { from_keras1(parse_json(config)); });
  };
  EXPECT_THAT(refusal(R"({"class_name": "BatchNormalization", "config": {"name": "norm",
                          "mode": 1, "axis": -1}})"),
              HasSubstr("BatchNormalization norm: 'mode' = 1"));
  EXPECT_THAT(refusal(R"({"class_name": "Dense", "config": {"name": "d", "output_dim": 2,
                          "W_regularizer": {"name": "EigenvalueRegularizer", "k": 0.1}}})"),
              HasSubstr("Dense d: the regularizer EigenvalueRegularizer"));
}

}  // namespace keel::keras1_dialect_test
