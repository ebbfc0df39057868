// Contracts of every layer that files may name, checked on one case per class.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/registry.h>
#include <keel/layers/retrieval/brute_force_retrieval.h>

namespace keel::conformance_test {

struct LayerCase {
  std::string config;  // JSON
  Specs inputs;
  Specs output;
  size_t trainable = 0;  // number of weights
  size_t total = 0;
};

TensorSpec floats(Shape shape) { return {.shape = shape}; }
TensorSpec ids(Shape shape) { return {.shape = shape, .dtype = DType::kInt64}; }
TensorSpec words(Shape shape) { return {.shape = shape, .dtype = DType::kString}; }
Specs pair_of(Shape shape) { return Specs::list({floats(shape), floats(shape)}); }

// A Functional and a Sequential model with one Dense layer each.
const char* const kGraph = R"({"name": "graph", "layers": [
    {"name": "graph_in", "class_name": "InputLayer",
     "config": {"batch_input_shape": [null, 3], "dtype": "float32"}, "inbound_nodes": []},
    {"name": "graph_out", "class_name": "Dense", "config": {"units": 2},
     "inbound_nodes": [[["graph_in", 0, 0, {}]]]}],
    "input_layers": [["graph_in", 0, 0]], "output_layers": [["graph_out", 0, 0]]})";
const char* const kStack = R"({"name": "stack", "layers": [
    {"class_name": "InputLayer", "config": {"batch_input_shape": [null, 3], "name": "stack_in"}},
    {"class_name": "Dense", "config": {"units": 2}}]})";
const char* const kTables =
    R"({"name": "tables", "tables": [{"name": "t", "vocabulary_size": 9, "dim": 4}],
    "feature_config": {"feature": {"table": 0}}})";

const char* const kDistributed = R"({"name": "distributed",
    "tables": [{"name": "t", "vocabulary_size": 9, "embedding_dim": 4}], "feature_configs":
    {"name": "f", "table": 0, "input_shape": [null, 3], "output_shape": [null, 4]}})";

const char* const kEmbeddingFeatures = R"({"name": "lookups",
    "tables": [{"name": "t", "vocabulary_size": 9, "dimension": 4, "combiner": "mean"}],
    "features": [{"key": "x", "table": "t"}]})";
const char* const kSequenceFeatures = R"({"name": "sequence", "feature_columns": [
    {"class_name": "TPUEmbeddingColumn", "config": {"dimension": 4, "max_sequence_length": 3,
     "categorical_column": {"key": "s", "num_buckets": 9, "sequence": true}}}]})";
const char* const kDenseFeatures = R"({"name": "dense_columns", "feature_columns": [
    {"class_name": "NumericColumn", "config": {"key": "n", "shape": [3]}}]})";

const char* const kLargeAndSmall = R"({"name": "partial", "size_threshold": 10, "tables": [
    {"name": "large", "vocabulary_size": 11, "dim": 4},
    {"name": "small", "vocabulary_size": 10, "dim": 3}],
    "feature_config": {"dict": {"a": {"feature": {"table": 0}}, "b": {"feature": {"table": 1}}}}})";

// The cases by class name. Inputs have two rows; the number of rows is unknown where specs are
// inferred.
const std::map<std::string, LayerCase>& cases() {
  static const std::map<std::string, LayerCase> kCases = {
      {"Activation", {R"({"activation": "gelu"})", floats({2, 3}), floats({2, 3})}},
      {"ActivityRegularization", {R"({"l1": 0.1, "l2": 0.2})", floats({2, 3}), floats({2, 3})}},
      {"Add", {"{}", pair_of({2, 3}), floats({2, 3})}},
      {"AdditiveAttention", {"{}", pair_of({2, 3, 4}), floats({2, 3, 4}), 1, 1}},
      {"AlphaDropout",
       {R"({"rate": 0.5, "noise_shape": [null, 1]})", floats({2, 3}), floats({2, 3})}},
      {"Attention",
       {R"({"use_scale": true, "score_mode": "concat"})", pair_of({2, 3, 4}), floats({2, 3, 4}), 2,
        2}},
      {"Average", {"{}", pair_of({2, 3}), floats({2, 3})}},
      {"AveragePooling1D",
       {R"({"pool_size": [2], "padding": "same"})", floats({2, 5, 3}), floats({2, 3, 3})}},
      {"BatchNormalization", {"{}", floats({2, 3}), floats({2, 3}), 2, 4}},
      {"Bidirectional",
       {R"({"layer": {"class_name": "GRU", "config": {"units": 3}}, "merge_mode": "sum"})",
        floats({2, 4, 5}), floats({2, 3}), 6, 6}},
      {"BruteForceRetrieval",
       {R"({"k": 2})", floats({2, 3}),
        Specs::tuple({floats({2, 2}), TensorSpec{.shape = {2, 2}, .dtype = DType::kInt32}})}},
      {"CategoryEncoding",
       {R"({"num_tokens": 4, "output_mode": "count"})", ids({2, 3}), floats({2, 4})}},
      {"Concatenate", {"{}", pair_of({2, 3}), floats({2, 6})}},
      {"Conv1D",
       {R"({"filters": 4, "kernel_size": [2], "strides": 2, "padding": "same"})", floats({2, 5, 3}),
        floats({2, 3, 4}), 2, 2}},
      {"Cropping1D", {R"({"cropping": [1, 2]})", floats({2, 5, 3}), floats({2, 2, 3})}},
      {"Dense", {R"({"units": 4, "activation": "tanh"})", floats({2, 3}), floats({2, 4}), 2, 2}},
      {"DenseFeatures", {kDenseFeatures, Specs({{"n", Specs(floats({2, 3}))}}), floats({2, 3})}},
      {"DepthwiseConv1D",
       {R"({"kernel_size": 2, "depth_multiplier": 2})", floats({2, 5, 3}), floats({2, 4, 6}), 2,
        2}},
      {"Discretization", {R"({"bin_boundaries": [0.0, 1.0]})", floats({2, 3}), ids({2, 3})}},
      {"DistributedEmbedding", {kDistributed, ids({2, 3}), floats({2, 4}), 1, 1}},
      {"Dot", {R"({"axes": [1, 1], "normalize": true})", pair_of({2, 3}), floats({2, 1})}},
      {"DotInteraction", {R"({"self_interaction": true})", pair_of({2, 3}), floats({2, 3})}},
      {"Dropout", {R"({"rate": 0.5, "seed": 3})", floats({2, 3}), floats({2, 3})}},
      {"ELU", {R"({"alpha": 0.5})", floats({2, 3}), floats({2, 3})}},
      {"EinsumDense",
       {R"({"equation": "abc,cd->abd", "output_shape": [null, 4], "bias_axes": "d"})",
        floats({2, 3, 5}), floats({2, 3, 4}), 2, 2}},
      {"EmbedReduce", {R"({"input_dim": 9, "output_dim": 4})", ids({2, 3}), floats({2, 4}), 1, 1}},
      {"Embedding", {R"({"input_dim": 9, "output_dim": 4})", ids({2, 3}), floats({2, 3, 4}), 1, 1}},
      {"EmbeddingFeatures",
       {kEmbeddingFeatures, Specs({{"x", Specs(ids({2, 1}))}}),
        Specs({{"x", Specs(floats({2, 4}))}}), 1, 1}},
      {"FeatureCross", {R"({"projection_dim": 2})", pair_of({2, 3}), floats({2, 3}), 3, 3}},
      {"Flatten", {"{}", floats({2, 3, 4}), floats({2, 12})}},
      {"Functional", {kGraph, floats({2, 3}), floats({2, 2}), 2, 2}},
      {"GRU",
       {R"({"units": 4, "dropout": 0.5, "return_sequences": true})", floats({2, 5, 3}),
        floats({2, 5, 4}), 3, 3}},
      {"GRUCell",
       {R"({"units": 3, "reset_after": false})", pair_of({2, 3}),
        Specs::list({floats({2, 3}), floats({2, 3})}), 3, 3}},
      {"GaussianDropout", {R"({"rate": 0.5})", floats({2, 3}), floats({2, 3})}},
      {"GaussianNoise", {R"({"stddev": 0.5})", floats({2, 3}), floats({2, 3})}},
      {"GlobalAveragePooling1D", {R"({"keepdims": true})", floats({2, 5, 3}), floats({2, 1, 3})}},
      {"GlobalMaxPooling1D",
       {R"({"data_format": "channels_first"})", floats({2, 5, 3}), floats({2, 5})}},
      {"GroupNormalization", {R"({"groups": 2})", floats({2, 3, 4}), floats({2, 3, 4}), 2, 2}},
      {"GroupQueryAttention",
       {R"({"head_dim": 3, "num_query_heads": 4, "num_key_value_heads": 2})", pair_of({2, 3, 4}),
        floats({2, 3, 4}), 8, 8}},
      {"Hashing", {R"({"num_bins": 7, "salt": [1, 2]})", words({2, 3}), ids({2, 3})}},
      {"Identity", {"{}", floats({2, 3}), floats({2, 3})}},
      {"InputLayer", {R"({"batch_shape": [null, 3]})", floats({2, 3}), floats({2, 3})}},
      {"IntegerLookup", {R"({"vocabulary": [3, 4]})", ids({2, 3}), ids({2, 3})}},
      {"LSTM",
       {R"({"units": 4, "recurrent_dropout": 0.5, "return_state": true})", floats({2, 5, 3}),
        Specs::list({floats({2, 4}), floats({2, 4}), floats({2, 4})}), 3, 3}},
      {"LSTMCell",
       {R"({"units": 3})", Specs::list({floats({2, 5}), floats({2, 3}), floats({2, 3})}),
        Specs::list({floats({2, 3}), floats({2, 3}), floats({2, 3})}), 3, 3}},
      {"LayerNormalization", {R"({"axis": [-1]})", floats({2, 3}), floats({2, 3}), 2, 2}},
      {"LeakyReLU", {R"({"negative_slope": 0.5})", floats({2, 3}), floats({2, 3})}},
      {"Masking", {"{}", floats({2, 3}), floats({2, 3})}},
      {"MaxPooling1D",
       {R"({"pool_size": [3], "strides": [1]})", floats({2, 5, 3}), floats({2, 3, 3})}},
      {"Maximum", {"{}", pair_of({2, 3}), floats({2, 3})}},
      {"Minimum", {"{}", pair_of({2, 3}), floats({2, 3})}},
      {"Model", {kGraph, floats({2, 3}), floats({2, 2}), 2, 2}},
      {"MultiHeadAttention",
       {R"({"num_heads": 2, "key_dim": 3, "output_shape": 5})", pair_of({2, 3, 4}),
        floats({2, 3, 5}), 8, 8}},
      {"Multiply", {"{}", pair_of({2, 3}), floats({2, 3})}},
      {"Normalization", {"{}", floats({2, 3}), floats({2, 3}), 0, 3}},
      {"PReLU", {R"({"shared_axes": [1]})", floats({2, 3, 4}), floats({2, 3, 4}), 1, 1}},
      {"PartialTPUEmbedding",
       {kLargeAndSmall, Specs({{"a", Specs(ids({2}))}, {"b", Specs(ids({2}))}}),
        Specs({{"a", Specs(floats({2, 4}))}, {"b", Specs(floats({2, 3}))}}), 2, 2}},
      {"Permute", {R"({"dims": [2, 1]})", floats({2, 3, 4}), floats({2, 4, 3})}},
      {"RMSNormalization", {R"({"axis": [-1]})", floats({2, 3}), floats({2, 3}), 1, 1}},
      {"ReLU", {R"({"max_value": 6.0, "threshold": 1.0})", floats({2, 3}), floats({2, 3})}},
      {"RepeatVector", {R"({"n": 4})", floats({2, 3}), floats({2, 4, 3})}},
      {"Rescaling", {R"({"scale": 0.5, "offset": [1, 2, 3]})", floats({2, 3}), floats({2, 3})}},
      {"Reshape", {R"({"target_shape": [2, -1]})", floats({2, 6}), floats({2, 2, 3})}},
      {"SeparableConv1D",
       {R"({"filters": 4, "kernel_size": 2})", floats({2, 5, 3}), floats({2, 4, 4}), 3, 3}},
      {"SequenceFeatures",
       {kSequenceFeatures,
        Specs({{"s", Specs(floats({2, 3, 4}))}, {"s_seq_length_", Specs(ids({2}))}}),
        Specs::tuple({floats({2, 3, 4}), ids({2})})}},
      {"Sequential", {kStack, floats({2, 3}), floats({2, 2}), 2, 2}},
      {"SimpleRNN",
       {R"({"units": 4, "go_backwards": true})", floats({2, 5, 3}), floats({2, 4}), 3, 3}},
      {"SimpleRNNCell",
       {R"({"units": 3, "use_bias": false})", pair_of({2, 3}),
        Specs::list({floats({2, 3}), floats({2, 3})}), 2, 2}},
      {"Softmax", {R"({"axis": [1, 2]})", floats({2, 3, 4}), floats({2, 3, 4})}},
      {"SpatialDropout1D", {R"({"rate": 0.5})", floats({2, 3, 4}), floats({2, 3, 4})}},
      {"StringLookup",
       {R"({"vocabulary": ["a"], "output_mode": "count"})", words({2, 3}), floats({2, 2})}},
      {"Subtract", {"{}", pair_of({2, 3}), floats({2, 3})}},
      {"TPUEmbedding", {kTables, ids({2}), floats({2, 4}), 1, 1}},
      {"TimeDistributed",
       {R"({"layer": {"class_name": "Dense", "config": {"units": 4}}})", floats({2, 5, 3}),
        floats({2, 5, 4}), 2, 2}},
      {"UnitNormalization", {"{}", floats({2, 3}), floats({2, 3})}},
      {"UpSampling1D", {R"({"size": 3})", floats({2, 3, 4}), floats({2, 9, 4})}},
      {"ZeroPadding1D", {R"({"padding": [0, 2]})", floats({2, 3, 4}), floats({2, 5, 4})}},
  };
  return kCases;
}

class LayerConformanceTest : public testing::TestWithParam<std::string> {
 protected:
  const LayerCase& layer_case() const { return cases().at(GetParam()); }
  LayerHandle<Layer> make() const {
    auto layer = layers::deserialize(
        Config::dict({{"class_name", GetParam()}, {"config", parse_json(layer_case().config)}}));
    if (auto* retrieval = dynamic_cast<BruteForceRetrievalLayer*>(&*layer)) {
      retrieval->update_candidates(Tensor::zeros({4, 3}));
    }
    return layer;
  }
};

Specs with_rows(const Specs& specs, int64_t rows) {
  return map_structure(specs, [&](const TensorSpec& spec) -> TensorSpec {
    TensorSpec out = spec;
    out.shape = out.shape.with(0, rows);
    return out;
  });
}

// Returns zeros for integers and strings, and distinct values for floats.
Tensors tensors_of(const Specs& specs) {
  return map_structure(specs, [](const TensorSpec& spec) -> TensorLike {
    Tensor out = Tensor::zeros(spec.shape, spec.dtype);
    if (!is_floating(spec.dtype)) return out;
    float value = 0.3F;
    for (float& v : out.mutable_data<float>()) v = (value += 0.7F * value - 0.1F);
    return out;
  });
}

TEST_P(LayerConformanceTest, ConfigsMakeEqualLayers) {
  const auto layer = make();
  const Config config = layers::serialize(*layer);
  const auto copy = layers::deserialize(parse_json(to_json(config)));
  EXPECT_EQ(to_json(layers::serialize(*copy)), to_json(config));
  EXPECT_EQ(copy->name(), layer->name());
  EXPECT_EQ(copy->class_name(), layer->class_name());
  // Otherwise the class is an alias. A "Model" of Keras 2 is read as a Functional.
  if (GetParam() != "Model") {
    EXPECT_EQ(layer->class_name(), GetParam());
  }
}

TEST_P(LayerConformanceTest, SpecsAreThoseOfTheResult) {
  const auto layer = make();
  const Specs specs = layer->compute_output_spec(with_rows(layer_case().inputs, kUnknown));
  EXPECT_EQ(flatten(specs), flatten(with_rows(layer_case().output, kUnknown)));
  const Tensors output = layer(tensors_of(layer_case().inputs));
  EXPECT_EQ(flatten(specs_of(output)), flatten(layer_case().output));
}

TEST_P(LayerConformanceTest, HasItsWeightsOnceBuilt) {
  const auto layer = make();
  layer->build(with_rows(layer_case().inputs, kUnknown));
  layer(tensors_of(layer_case().inputs));
  EXPECT_EQ(layer->trainable_variables().size(), layer_case().trainable);
  EXPECT_EQ(layer->weights().size(), layer_case().total);
  layer->set_trainable(false);
  EXPECT_TRUE(layer->trainable_variables().empty());
}

TEST_P(LayerConformanceTest, GradientsReachAllItsWeights) {
  const auto layer = make();
  layer->build(layer_case().inputs);
  GradientTape tape;
  const Tensors output = layer(tensors_of(layer_case().inputs), {.training = true});
  const auto variables = layer->trainable_variables();
  if (variables.empty()) return;
  Tensor loss = Tensor::scalar<float>(0);
  for (const TensorLike& leaf : flatten(output)) loss = loss + ops::sum(leaf.tensor());
  const auto gradients = tape.gradient(loss, variables);
  for (size_t i = 0; i < variables.size(); ++i) {
    ASSERT_TRUE(gradients[i]) << variables[i].name();
    EXPECT_EQ(gradients[i].dense().shape(), variables[i].shape()) << variables[i].name();
  }
}

TEST_P(LayerConformanceTest, ABatchOfNoRowsGivesNoRows) {
  const auto layer = make();
  for (const bool training : {false, true}) {
    const Tensors output =
        layer(tensors_of(with_rows(layer_case().inputs, 0)), {.training = training});
    EXPECT_EQ(flatten(specs_of(output)), flatten(with_rows(layer_case().output, 0)));
  }
}

std::vector<std::string> class_names() {
  std::vector<std::string> out;
  for (const auto& [name, _] : cases()) out.push_back(name);
  return out;
}

INSTANTIATE_TEST_SUITE_P(AllLayers, LayerConformanceTest, testing::ValuesIn(class_names()),
                         [](const auto& one) { return one.param; });

TEST(LayerRegistryTest, EveryClassHasACase) {
  for (const std::string& name : layer_registry().class_names()) {
    EXPECT_TRUE(cases().contains(name)) << name << " has no conformance case";
  }
}

// Adds the paths where a config written here differs from Keras's:
// "Dense/kernel_initializer/config/input_axes".
void add_differences(const Config& keras, const Config& ours, const std::string& path,
                     std::set<std::string>& out) {
  if (keras.is_dict() && ours.is_dict()) {
    for (const auto& [key, value] : keras.entries()) {
      const Config* const found = ours.find(key);
      if (found == nullptr) {
        out.insert(path + "/" + key);
      } else {
        add_differences(value, *found, path + "/" + key, out);
      }
    }
    for (const auto& [key, value] : ours.entries()) {
      if (keras.find(key) == nullptr) out.insert("more: " + path + "/" + key + to_json(value));
    }
    return;
  }
  const bool same_number = keras.is_number() && ours.is_number() && keras.number() == ours.number();
  if (keras != ours && !same_number) out.insert(path + ": " + to_json(keras) + to_json(ours));
}

bool ends_with_one_of(const std::string& text, const std::vector<std::string>& ends) {
  return std::ranges::any_of(ends, [&](const auto& end) { return text.ends_with(end); });
}

// The cases are layers as Keras 3.16 writes them, one of each class.
TEST(KerasConfigsTest, HaveTheKeysAndValuesOfKeras) {
  std::ifstream in(KEEL_SOURCE_DIR "/tests/cases/keras_layer_configs.json");
  const Config all = parse_json({std::istreambuf_iterator<char>(in), {}});
  ASSERT_GT(all.entries().size(), 50);
  for (const auto& [class_name, config] : all.entries()) {
    const auto layer =
        layers::deserialize(Config::dict({{"class_name", class_name}, {"config", config}}));
    std::set<std::string> found;
    add_differences(config, layers::serialize(*layer)["config"], class_name, found);
    // Keys that only recent versions of Keras accept. They always have the value without effect
    // here.
    std::erase_if(found, [](const std::string& path) {
      return ends_with_one_of(path, {"/input_axes", "/output_axes", "/quantization_config",
                                     "/renorm", "/renorm_clipping", "/renorm_momentum",
                                     "/synchronized", "CategoryEncoding/sparse"});
    });
    // Keys that Keras accepts but does not write.
    std::erase_if(found, [](const std::string& path) {
      return ends_with_one_of(
          path, {"more: Dense/activity_regularizernull", "layer/config/activity_regularizernull",
                 "more: SimpleRNN/seednull"});
    });
    EXPECT_EQ(found, std::set<std::string>()) << class_name;
  }
}

}  // namespace keel::conformance_test
