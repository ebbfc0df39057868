#include "tests/fuzz/models.h"

#include <set>

#include <keel/framework/config/config.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/reshaping/reshaping.h>
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

// Layers for float32 images, volumes and strings.
constexpr const char* kImageLayers = R"([
  {"class_name": "Conv2D", "config": {"filters": 2, "kernel_size": [2, 3], "dilation_rate": [1, 2],
    "groups": 2, "padding": "same"}},
  {"class_name": "Conv2DTranspose", "config": {"filters": 2, "kernel_size": 2, "strides": 2,
    "output_padding": 1}},
  {"class_name": "DepthwiseConv2D", "config": {"kernel_size": 2, "depth_multiplier": 2}},
  {"class_name": "SeparableConv2D", "config": {"filters": 2, "kernel_size": [2, 2]}},
  {"class_name": "AveragePooling2D", "config": {"pool_size": 2, "padding": "same"}},
  {"class_name": "AdaptiveMaxPooling2D", "config": {"output_size": [2, 3]}},
  {"class_name": "GlobalMaxPooling2D", "config": {"keepdims": true}},
  {"class_name": "GroupNormalization", "config": {"groups": 2}},
  {"class_name": "Resizing", "config": {"height": 3, "width": 5, "interpolation": "bicubic",
    "crop_to_aspect_ratio": true}},
  {"class_name": "CenterCrop", "config": {"height": 2, "width": 3}},
  {"class_name": "Cropping2D", "config": {"cropping": [[1, 0], [0, 1]]}},
  {"class_name": "Pipeline", "config": {"layers": [
    {"class_name": "RandomFlip", "config": {"mode": "horizontal", "seed": 1}},
    {"class_name": "RandomRotation", "config": {"factor": [-0.1, 0.2], "fill_mode": "wrap"}},
    {"class_name": "RandomZoom", "config": {"height_factor": 0.2}}]}},
  {"class_name": "RandAugment", "config": {"value_range": [0, 1], "num_ops": 2}},
  {"class_name": "RandomPerspective", "config": {"factor": 0.5, "scale": 0.3}},
  {"class_name": "Equalization", "config": {"value_range": [0, 255], "bins": 16}},
  {"class_name": "SpatialDropout2D", "config": {"rate": 0.5}}])";
constexpr const char* kVolumeLayers = R"([
  {"class_name": "Conv3D", "config": {"filters": 1, "kernel_size": [1, 2, 2],
    "data_format": "channels_last"}},
  {"class_name": "Conv3DTranspose", "config": {"filters": 1, "kernel_size": 2}},
  {"class_name": "MaxPooling3D", "config": {"pool_size": [1, 2, 2]}},
  {"class_name": "UpSampling3D", "config": {"size": [1, 2, 1]}}])";
constexpr const char* kTextLayers = R"([
  {"class_name": "StringLookup", "config": {"vocabulary": ["a", "b"], "mask_token": "",
    "num_oov_indices": 2}},
  {"class_name": "TextVectorization", "config": {"vocabulary": ["a", "a b"], "ngrams": 2,
    "output_mode": "tf_idf", "idf_weights": [0.5, 0.75], "split": null}},
  {"class_name": "Hashing", "config": {"num_bins": 5, "mask_value": "a", "salt": [1, 2]}}])";
constexpr const char* kSoundLayers = R"([
  {"class_name": "MelSpectrogram", "config": {"fft_length": 16, "sequence_stride": 8,
    "num_mel_bins": 4, "sampling_rate": 100, "max_freq": 50}}])";
constexpr const char* kChannelLayers = R"([
  {"class_name": "STFTSpectrogram", "config": {"frame_length": 8, "frame_step": 4,
    "fft_length": 16, "mode": "log"}}])";

// A graph of Keras 2 with operators of TensorFlow, one of Keras 3 with operators and attention, and
// one with masks.
constexpr const char* kGraphs = R"([
  {"class_name": "Functional", "config": {"name": "m", "layers": [
    {"class_name": "InputLayer", "name": "x", "config": {"name": "x",
      "batch_input_shape": [null, 2, 3], "dtype": "float32"}, "inbound_nodes": []},
    {"class_name": "TFOpLambda", "name": "c", "config": {"name": "c", "function": "math.cumsum"},
      "inbound_nodes": [["x", 0, 0, {"axis": 2, "exclusive": true, "reverse": true}]]},
    {"class_name": "SlicingOpLambda", "name": "s", "config": {"name": "s",
      "function": "__operators__.getitem"}, "inbound_nodes": [["c", 0, 0, {"slice_spec": [
      {"start": null, "stop": null, "step": null}, {"start": 0, "stop": 1, "step": null}]}]]},
    {"class_name": "TFOpLambda", "name": "g", "config": {"name": "g", "function": "gather"},
      "inbound_nodes": [["s", 0, 0, {"indices": [0, 2], "axis": 2, "batch_dims": 0}]]},
    {"class_name": "TFOpLambda", "name": "p", "config": {"name": "p", "function": "split"},
      "inbound_nodes": [["g", 0, 0, {"num_or_size_splits": [1, -1], "axis": 2}]]}],
    "input_layers": [["x", 0, 0]], "output_layers": [["p", 0, 1]]}},
  {"class_name": "Functional", "config": {"name": "m", "layers": [
    {"class_name": "InputLayer", "name": "x", "config": {"name": "x",
      "batch_shape": [null, 2, 4], "dtype": "float32"}, "inbound_nodes": []},
    {"module": "keras.layers", "class_name": "MultiHeadAttention", "name": "a", "config": {
      "name": "a", "num_heads": 2, "key_dim": 2}, "inbound_nodes": [{"args": [
      {"class_name": "__keras_tensor__", "config": {"keras_history": ["x", 0, 0]}},
      {"class_name": "__keras_tensor__", "config": {"keras_history": ["x", 0, 0]}}],
      "kwargs": {"use_causal_mask": true}}]},
    {"module": "keras.src.ops.numpy", "class_name": "Cumsum", "name": "c", "config": {"name": "c",
      "axis": 1, "dtype": "float32"}, "inbound_nodes": [{"args": [
      {"class_name": "__keras_tensor__", "config": {"keras_history": ["a", 0, 0]}}],
      "kwargs": {}}]}],
    "input_layers": ["x", 0, 0], "output_layers": ["c", 0, 0]}},
  {"class_name": "Functional", "config": {"name": "m", "layers": [
    {"class_name": "InputLayer", "name": "x", "config": {"name": "x",
      "batch_shape": [null, 3], "dtype": "float32"}, "inbound_nodes": []},
    {"class_name": "InputLayer", "name": "y", "config": {"name": "y",
      "batch_shape": [null, 3], "dtype": "bool"}, "inbound_nodes": []},
    {"module": "keras.layers",
      "class_name": "Softmax", "name": "s", "config": {"name": "s"}, "inbound_nodes": [{"args": [
      {"class_name": "__keras_tensor__", "config": {"keras_history": ["x", 0, 0]}}],
      "kwargs": {"mask": [[true, false, true]]}}, {"args": [
      {"class_name": "__keras_tensor__", "config": {"keras_history": ["s", 0, 0]}}],
      "kwargs": {"mask": {"class_name": "__keras_tensor__", "config": {"keras_history":
        ["y", 0, 0]}}}}]},
    {"module": "keras.layers",
      "class_name": "Reshape", "name": "r", "config": {"name": "r", "target_shape": [3, 1]},
      "inbound_nodes": [{"args": [{"class_name": "__keras_tensor__", "config": {"keras_history":
        ["s", 1, 0]}}], "kwargs": {}}]},
    {"module": "keras.layers",
      "class_name": "LSTM", "name": "l", "config": {"name": "l", "units": 2, "return_state": true},
      "inbound_nodes": [{"args": [{"class_name": "__keras_tensor__", "config": {"keras_history":
        ["r", 0, 0]}}], "kwargs": {"training": null, "mask": {"class_name": "__keras_tensor__",
        "config": {"keras_history": ["y", 0, 0]}}}}]},
    {"module": "keras.layers",
      "class_name": "TimeDistributed", "name": "t", "config": {"name": "t", "layer":
      {"class_name": "Dense", "config": {"name": "d", "units": 2}}}, "inbound_nodes": [{"args": [
      {"class_name": "__keras_tensor__", "config": {"keras_history": ["r", 0, 0]}}],
      "kwargs": {"mask": {"class_name": "__keras_tensor__", "config": {"keras_history":
        ["y", 0, 0]}}}}]},
    {"module": "keras.layers",
      "class_name": "GlobalAveragePooling1D", "name": "g", "config": {"name": "g"},
      "inbound_nodes": [{"args": [{"class_name": "__keras_tensor__", "config": {"keras_history":
        ["t", 0, 0]}}], "kwargs": {}}]},
    {"module": "keras.layers",
      "class_name": "Attention", "name": "a", "config": {"name": "a"}, "inbound_nodes": [{"args": [[
      {"class_name": "__keras_tensor__", "config": {"keras_history": ["t", 0, 0]}},
      {"class_name": "__keras_tensor__", "config": {"keras_history": ["t", 0, 0]}}]],
      "kwargs": {"mask": [{"class_name": "__keras_tensor__", "config": {"keras_history":
        ["y", 0, 0]}}, null], "use_causal_mask": false}}]},
    {"module": "keras.layers",
      "class_name": "Concatenate", "name": "c", "config": {"name": "c", "axis": -1},
      "inbound_nodes": [{"args": [[
      {"class_name": "__keras_tensor__", "config": {"keras_history": ["l", 0, 2]}},
      {"class_name": "__keras_tensor__", "config": {"keras_history": ["g", 0, 0]}}]],
      "kwargs": {"mask": [null, null]}}]}],
    "input_layers": [["x", 0, 0], ["y", 0, 0]],
    "output_layers": {"c": ["c", 0, 0], "a": ["a", 0, 0]}}}])";

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

const ModelHandle& small_dynamic() {
  static const ModelHandle kModel = []() -> ModelHandle {
    const Tensors inputs = {
        {"word", layers::input({.shape = {2}, .dtype = DType::kString, .name = "word"})},
        {"item", layers::input({.shape = {2}, .dtype = DType::kInt64, .name = "item"})}};
    const layers::Embedding words(
        {.output_dim = 1,
         .dynamic =
             DynamicVocabulary{.key = KeyType::kString, .not_admitted = NotAdmitted::hashed(2)},
         .name = "words"});
    const layers::Embedding items(
        {.output_dim = 1,
         .dynamic = DynamicVocabulary{.admission = Admission::count(2),
                                      .not_admitted = NotAdmitted::default_row()},
         .name = "items"});
    const layers::Flatten flat({});
    const Tensors all =
        Tensors::list({flat(words(inputs["word"].tensor())), flat(items(inputs["item"].tensor()))});
    Functional model(
        {.inputs = inputs,
         .outputs = layers::Dense({.units = 1, .name = "a"})(layers::Concatenate({})(all)),
         .name = "dynamic"});
    model->compile({.optimizer = "adagrad", .loss = "mse"});
    const Tensors batch = {{"word", Tensor::from<std::string>({"a", "b", "", "a"}, {2, 2})},
                           {"item", Tensor::from<int64_t>({7, -7, 1LL << 40, 7}, {2, 2})}};
    for (int step = 0; step < 2; ++step) {
      model->train_on_batch(batch, Tensor::from<float>({0, 1}, {2, 1}));
    }
    return model;
  }();
  return kModel;
}

std::vector<ModelHandle> one_layer_models() {
  static const std::set<std::string> kClasses = {"RNN",
                                                 "Bidirectional",
                                                 "ConvLSTM2D",
                                                 "Conv2D",
                                                 "Conv2DTranspose",
                                                 "Conv3D",
                                                 "SeparableConv2D",
                                                 "DepthwiseConv2D",
                                                 "Embedding",
                                                 "ReversibleEmbedding",
                                                 "SpectralNormalization",
                                                 "StringLookup",
                                                 "IntegerLookup",
                                                 "TextVectorization"};
  std::vector<ModelHandle> out;
  for (const Config& config : one_layer_configs()) {
    const Config& layer = config["config"]["layers"].items()[1];
    if (kClasses.contains(layer["class_name"].string())) out.push_back(model_from_keras(config));
  }
  return out;
}

std::vector<Config> graph_configs() { return parse_json(kGraphs).items(); }

const utils::FeatureSpace& small_space() {
  static const utils::FeatureSpace kSpace(
      {.features = {{"age", "float_normalized"},
                    {"city", utils::string_categorical({})},
                    {"visits", utils::integer_hashed({.num_bins = 3})}},
       .crosses = {{{"city", "visits"}, 4, "one_hot"}}});
  [[maybe_unused]] static const bool kAdapted = [] {
    kSpace->adapt(data::Dataset::from_tensor_slices(
        Tensors::dict({{"age", Tensor::from<float>({1, 3}, {2})},
                       {"city", Tensor::from<std::string>({"a", "b"}, {2})},
                       {"visits", Tensor::from<int32_t>({5, 6}, {2})}})));
    return true;
  }();
  return kSpace;
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
  add(input_layer("float32", Config::list({Config(), 4, 6, 2})), kImageLayers);
  add(input_layer("float32", Config::list({Config(), 2, 3, 4, 1})), kVolumeLayers);
  add(input_layer("string", Config::list({Config(), 2})), kTextLayers);
  add(input_layer("float32", Config::list({Config(), 32})), kSoundLayers);
  add(input_layer("float32", Config::list({Config(), 32, 1})), kChannelLayers);
  return out;
}

}  // namespace keel::fuzz
