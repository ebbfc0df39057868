// What every layer that files may name has to do, checked on one case of each class.
#include <map>

#include "gtest/gtest.h"

#include "autodiff/ops.h"
#include "autodiff/tape.h"
#include "layers/registry.h"

namespace keel {
namespace {

struct LayerCase {
  std::string config;  // JSON
  Specs inputs;
  Specs output;
  size_t trainable = 0;  // weights
  size_t total = 0;
};

TensorSpec floats(Shape shape) { return {.shape = shape}; }
TensorSpec ids(Shape shape) { return {.shape = shape, .dtype = DType::kInt64}; }
TensorSpec words(Shape shape) { return {.shape = shape, .dtype = DType::kString}; }
Specs pair_of(Shape shape) { return Specs::list({floats(shape), floats(shape)}); }

// A graph and a stack of one Dense.
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

// Two rows; the number of rows is left open where specs are inferred.
const std::map<std::string, LayerCase>& cases() {
  static const std::map<std::string, LayerCase> kCases = {
      {"Activation", {R"({"activation": "gelu"})", floats({2, 3}), floats({2, 3})}},
      {"Add", {"{}", pair_of({2, 3}), floats({2, 3})}},
      {"Average", {"{}", pair_of({2, 3}), floats({2, 3})}},
      {"BatchNormalization", {"{}", floats({2, 3}), floats({2, 3}), 2, 4}},
      {"Concatenate", {"{}", pair_of({2, 3}), floats({2, 6})}},
      {"Dense", {R"({"units": 4, "activation": "tanh"})", floats({2, 3}), floats({2, 4}), 2, 2}},
      {"DenseFeatures", {kDenseFeatures, Specs({{"n", Specs(floats({2, 3}))}}), floats({2, 3})}},
      {"Discretization", {R"({"bin_boundaries": [0.0, 1.0]})", floats({2, 3}), ids({2, 3})}},
      {"DistributedEmbedding", {kDistributed, ids({2, 3}), floats({2, 4}), 1, 1}},
      {"Dot", {R"({"axes": [1, 1], "normalize": true})", pair_of({2, 3}), floats({2, 1})}},
      {"DotInteraction", {R"({"self_interaction": true})", pair_of({2, 3}), floats({2, 3})}},
      {"Dropout", {R"({"rate": 0.5, "seed": 3})", floats({2, 3}), floats({2, 3})}},
      {"EmbedReduce", {R"({"input_dim": 9, "output_dim": 4})", ids({2, 3}), floats({2, 4}), 1, 1}},
      {"Embedding", {R"({"input_dim": 9, "output_dim": 4})", ids({2, 3}), floats({2, 3, 4}), 1, 1}},
      {"EmbeddingFeatures",
       {kEmbeddingFeatures, Specs({{"x", Specs(ids({2, 1}))}}),
        Specs({{"x", Specs(floats({2, 4}))}}), 1, 1}},
      {"FeatureCross", {R"({"projection_dim": 2})", pair_of({2, 3}), floats({2, 3}), 3, 3}},
      {"Flatten", {"{}", floats({2, 3, 4}), floats({2, 12})}},
      {"Functional", {kGraph, floats({2, 3}), floats({2, 2}), 2, 2}},
      {"Hashing", {R"({"num_bins": 7, "salt": [1, 2]})", words({2, 3}), ids({2, 3})}},
      {"Identity", {"{}", floats({2, 3}), floats({2, 3})}},
      {"InputLayer", {R"({"batch_shape": [null, 3]})", floats({2, 3}), floats({2, 3})}},
      {"IntegerLookup", {R"({"vocabulary": [3, 4]})", ids({2, 3}), ids({2, 3})}},
      {"LayerNormalization", {R"({"axis": [-1]})", floats({2, 3}), floats({2, 3}), 2, 2}},
      {"Masking", {"{}", floats({2, 3}), floats({2, 3})}},
      {"Maximum", {"{}", pair_of({2, 3}), floats({2, 3})}},
      {"Minimum", {"{}", pair_of({2, 3}), floats({2, 3})}},
      {"Model", {kGraph, floats({2, 3}), floats({2, 2}), 2, 2}},
      {"Multiply", {"{}", pair_of({2, 3}), floats({2, 3})}},
      {"Normalization", {"{}", floats({2, 3}), floats({2, 3}), 0, 3}},
      {"PartialTPUEmbedding",
       {kLargeAndSmall, Specs({{"a", Specs(ids({2}))}, {"b", Specs(ids({2}))}}),
        Specs({{"a", Specs(floats({2, 4}))}, {"b", Specs(floats({2, 3}))}}), 2, 2}},
      {"ReLU", {R"({"max_value": 6.0, "threshold": 1.0})", floats({2, 3}), floats({2, 3})}},
      {"Rescaling", {R"({"scale": 0.5, "offset": [1, 2, 3]})", floats({2, 3}), floats({2, 3})}},
      {"Reshape", {R"({"target_shape": [2, -1]})", floats({2, 6}), floats({2, 2, 3})}},
      {"SequenceFeatures",
       {kSequenceFeatures,
        Specs({{"s", Specs(floats({2, 3, 4}))}, {"s_seq_length_", Specs(ids({2}))}}),
        Specs::tuple({floats({2, 3, 4}), ids({2})})}},
      {"Sequential", {kStack, floats({2, 3}), floats({2, 2}), 2, 2}},
      {"StringLookup",
       {R"({"vocabulary": ["a"], "output_mode": "count"})", words({2, 3}), floats({2, 2})}},
      {"Subtract", {"{}", pair_of({2, 3}), floats({2, 3})}},
      {"TPUEmbedding", {kTables, ids({2}), floats({2, 4}), 1, 1}},
  };
  return kCases;
}

class LayerConformanceTest : public testing::TestWithParam<std::string> {
 protected:
  const LayerCase& layer_case() const { return cases().at(GetParam()); }
  LayerHandle<Layer> make() const {
    return layers::deserialize(
        Config::dict({{"class_name", GetParam()}, {"config", parse_json(layer_case().config)}}));
  }
};

Specs with_rows(const Specs& specs, int64_t rows) {
  return map_structure(specs, [&](const TensorSpec& spec) -> TensorSpec {
    TensorSpec out = spec;
    out.shape = out.shape.with(0, rows);
    return out;
  });
}

// Zeros of integers and strings, and floats that differ.
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

}  // namespace
}  // namespace keel
