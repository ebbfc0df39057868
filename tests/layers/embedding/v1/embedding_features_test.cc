#include <keel/layers/embedding/v1/embedding_features.h>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::embedding_features_test {

using layers::EmbeddingFeatures;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::int_spec;
using testing_support::values_of;
using tpu::v1::Configs;
using tpu::v1::FeatureOptions;
using tpu::v1::TableOptions;
using Values = std::vector<float>;

// Table "t" with rows 0, 1, 2, 3, pooled feature "x" with weights, sequence feature "s".
Configs configs() {
  return {
      .table_to_config_dict = {{"t", TableOptions{.vocabulary_size = 4, .dimension = 1}}},
      .feature_to_config_dict = {{"x", FeatureOptions{.table_id = "t", .weight_key = "w"}},
                                 {"s", FeatureOptions{.table_id = "t", .max_sequence_length = 2}}}};
}

EmbeddingFeatures layer_of(const EmbeddingFeaturesOptions& options) {
  EmbeddingFeatures out(options);
  out->tables().at("t").assign(Tensor::from<float>({0, 1, 2, 3}, {4, 1}));
  return out;
}

Tensors batch() {
  return {{"x", RaggedTensor::from_rows<int64_t>({{1, 3}, {}})},
          {"w", RaggedTensor::from_rows<float>({{1, 3}, {}})},
          {"s", RaggedTensor::from_rows<int64_t>({{1, 2, 3}, {3}})},
          {"age", Tensor::from<float>({30, 40}, {2})}};
}

TEST(EmbeddingFeatures, ReplacesIdsByActivations) {
  const Tensors out = layer_of({.configs = configs()})(batch());
  EXPECT_EQ(values_of(out["x"]), Values({2.5, 0}));
  EXPECT_EQ(values_of(out["s"]), Values({1, 2, 3, 0}));
  EXPECT_EQ(out["s"].tensor().shape(), Shape({2, 2, 1}));
  EXPECT_EQ(out["s_seq_length_"].tensor().to_vector<int64_t>(), std::vector<int64_t>({2, 1}));
  EXPECT_EQ(values_of(out["age"]), Values({30, 40}));
  EXPECT_FALSE(out.entries().contains("w"));
}

TEST(EmbeddingFeatures, SymbolicBatchesHaveTheSameShapes) {
  const EmbeddingFeatures layer = layer_of({.configs = configs()});
  const Tensors out = layer(Tensors({{"x", layers::ragged_input({.dtype = DType::kInt64})},
                                     {"w", layers::ragged_input({})},
                                     {"s", layers::ragged_input({.dtype = DType::kInt64})},
                                     {"age", layers::input({})}}));
  EXPECT_EQ(out["x"].leaf().spec().shape, Shape({kUnknown, 1}));
  EXPECT_EQ(out["s"].leaf().spec().shape, Shape({kUnknown, 2, 1}));
  EXPECT_EQ(out["s_seq_length_"].leaf().spec().dtype, DType::kInt64);
  EXPECT_FALSE(out.entries().contains("w"));
}

TEST(EmbeddingFeatures, TrainsItsTables) {
  const EmbeddingFeatures layer = layer_of({.configs = configs()});
  GradientTape tape;
  const Tensor loss = ops::sum(layer(batch())["x"].tensor());
  const auto gradients = tape.gradient(loss, layer->trainable_variables());
  EXPECT_EQ(gradients[0].dense().to_vector<float>(), Values({0, 0.25, 0, 0.75}));
}

TEST(EmbeddingFeatures, DropsNonPositiveWeightsInSafeLookups) {
  const SparseTensor ids = {.indices = Tensor::from<int64_t>({0, 0, 0, 1}, {2, 2}),
                            .values = Tensor::from<int64_t>({1, 3}, {2}),
                            .dense_shape = {1, 2}};
  SparseTensor weights = ids;
  weights.values = Tensor::from<float>({2, -1}, {2});
  const Tensors features = {
      {"x", ids}, {"w", weights}, {"s", RaggedTensor::from_rows<int64_t>({{1}})}};
  EXPECT_EQ(values_of(layer_of({.configs = configs()})(features)["x"]), Values({1}));
  EXPECT_EQ(values_of(layer_of({.configs = configs(), .unsafe_features = {"x"}})(features)["x"]),
            Values({-1}));
}

TEST(EmbeddingFeatures, RejectsABatchWithoutItsFeatures) {
  const EmbeddingFeatures layer = layer_of({.configs = configs()});
  EXPECT_THROW(layer(Tensors({{"x", Tensor::zeros({1}, DType::kInt64)}})), ValueError);
}

TEST(EmbeddingFeatures, RoundTripsThroughItsConfig) {
  const EmbeddingFeatures layer = layer_of({.configs = configs(), .unsafe_features = {"s"}});
  const Config config = layer->get_config();
  const auto again = layers::deserialize(
      Config::dict({{"class_name", "EmbeddingFeatures"}, {"config", parse_json(to_json(config))}}));
  EXPECT_EQ(to_json(again->get_config()), to_json(config));
  Config broken = config;
  broken.set("tables", Config::List{});
  EXPECT_THROW(EmbeddingFeaturesLayer::from_config(broken), ValueError);
  broken.set("more", 1);
  EXPECT_THROW(EmbeddingFeaturesLayer::from_config(broken), ValueError);
}

TEST(EmbeddingFeatures, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "EmbeddingFeatures",
                         .config = R"({"name": "lookups",
    "tables": [{"name": "t", "vocabulary_size": 9, "dimension": 4, "combiner": "mean"}],
    "features": [{"key": "x", "table": "t"}]})",
                         .inputs = Specs({{"x", Specs(int_spec({2, 1}))}}),
                         .output = Specs({{"x", Specs(float_spec({2, 4}))}}),
                         .trainable_weights = 1,
                         .weights = 1});
}

}  // namespace keel::embedding_features_test
