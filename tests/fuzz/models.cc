#include "tests/fuzz/models.h"

#include <keel/framework/config/config.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/merging/merging.h>
#include <keel/savedmodel/keras/internal/keras_model_config.h>

namespace keel::fuzz {
namespace {

constexpr const char* kCompiled =
    R"({"optimizer": {"class_name": "SGD", "config": {}}, "loss": "mse",
  "metrics": ["mae"], "loss_weights": null, "weighted_metrics": null})";

constexpr const char* kDense =
    R"({"class_name": "Sequential", "config": {"name": "dense", "layers": [
  {"class_name": "InputLayer", "config": {"batch_shape": [null, 3], "dtype": "float32", "name": "x"}},
  {"class_name": "Dense", "config": {"units": 2, "activation": "relu", "name": "a",
    "kernel_regularizer": {"class_name": "L2", "config": {"l2": 0.01}},
    "kernel_constraint": {"class_name": "MaxNorm", "config": {"max_value": 2, "axis": 0}}}}]}})";

// Layers for an input of a float32 series, for one of frames, and for one of int32 items.
constexpr const char* kSeriesLayers = R"([
  {"class_name": "BatchNormalization", "config": {}},
  {"class_name": "Conv1D", "config": {"filters": 2, "kernel_size": [3], "padding": "causal"}},
  {"class_name": "SeparableConv1D", "config": {"filters": 2, "kernel_size": 2}},
  {"class_name": "LayerNormalization", "config": {"axis": -1}},
  {"class_name": "MaxPooling1D", "config": {"pool_size": 2}},
  {"class_name": "ZeroPadding1D", "config": {"padding": [1, 2]}},
  {"class_name": "UpSampling1D", "config": {"size": 2}},
  {"class_name": "Bidirectional", "config": {"merge_mode": "sum", "layer":
    {"class_name": "GRU", "config": {"units": 2, "return_sequences": true}}}},
  {"class_name": "LSTM", "config": {"units": 2}},
  {"class_name": "TimeDistributed", "config": {"layer":
    {"class_name": "Dense", "config": {"units": 1}}}},
  {"class_name": "EinsumDense", "config": {"equation": "abc,cd->abd", "output_shape": [null, 2],
    "bias_axes": "d"}},
  {"class_name": "Flatten", "config": {}},
  {"class_name": "PReLU", "config": {"shared_axes": [1]}},
  {"class_name": "RNN", "config": {"go_backwards": true, "cell": {"class_name": "StackedRNNCells",
    "config": {"cells": [{"class_name": "LSTMCell", "config": {"units": 2}},
      {"class_name": "GRUCell", "config": {"units": 1, "reset_after": false}}]}}}},
  {"class_name": "SpectralNormalization", "config": {"power_iterations": 2, "layer":
    {"class_name": "Dense", "config": {"units": 2}}}},
  {"class_name": "Lambda", "config": {"function": {"module": "builtins", "class_name": "function",
    "config": "relu", "registered_name": "function"}, "output_shape": [6, 2], "arguments": {}}},
  {"class_name": "Softmax", "config": {"axis": -1}}])";
constexpr const char* kFrameLayers = R"([
  {"class_name": "ConvLSTM2D", "config": {"filters": 1, "kernel_size": [2, 2], "strides": [1, 2],
    "padding": "same", "return_sequences": true}},
  {"class_name": "SpatialDropout3D", "config": {"rate": 0.5}}])";
constexpr const char* kItemLayers = R"([
  {"class_name": "Embedding", "config": {"input_dim": 5, "output_dim": 4, "mask_zero": true}},
  {"class_name": "ReversibleEmbedding", "config": {"input_dim": 5, "output_dim": 2,
    "tie_weights": false, "logit_soft_cap": 3.0}},
  {"class_name": "RepeatVector", "config": {"n": 2}},
  {"class_name": "Reshape", "config": {"target_shape": [2, -1]}},
  {"class_name": "IntegerLookup", "config": {"vocabulary": [3, 5], "output_mode": "multi_hot"}},
  {"class_name": "Hashing", "config": {"num_bins": 3}}])";

Config input_layer(const char* dtype, Config shape) {
  return Config::dict(
      {{"class_name", "InputLayer"},
       {"config",
        Config::dict({{"batch_shape", std::move(shape)}, {"dtype", dtype}, {"name", "x"}})}});
}

ModelHandle compiled(const char* json) {
  ModelHandle model = model_from_keras(parse_json(json));
  model->compile_from_config(parse_json(kCompiled));
  return model;
}

}  // namespace

const ModelHandle& small_model() {
  static const ModelHandle kModel = compiled(kDense);
  return kModel;
}

const ModelHandle& small_graph() {
  static const ModelHandle kModel = []() -> ModelHandle {
    const Tensor x = layers::input({.shape = {3}, .name = "x"});
    const layers::Dense shared({.units = 3, .name = "a"});
    const Tensors sum = layers::Add({.name = "sum"})(Tensors::list({shared(x), shared(x)}));
    return Functional({.inputs = x, .outputs = sum, .name = "graph"});
  }();
  return kModel;
}

std::vector<Config> one_layer_configs() {
  std::vector<Config> out;
  const auto add = [&](const Config& input, const char* layers) {
    const Config all = parse_json(layers);
    for (const Config& layer : all.items()) {
      const Config config = Config::dict({{"layers", Config::list({input, layer})}});
      out.push_back(Config::dict({{"class_name", "Sequential"}, {"config", config}}));
    }
  };
  add(input_layer("float32", Config::list({Config(), 6, 2})), kSeriesLayers);
  add(input_layer("float32", Config::list({Config(), 2, 3, 4, 1})), kFrameLayers);
  add(input_layer("int32", Config::list({Config(), 4})), kItemLayers);
  return out;
}

}  // namespace keel::fuzz
