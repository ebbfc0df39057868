#include <keel/layers/feature_columns/dense_features.h>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/feature_columns/tpu_embedding_column.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::dense_features_test {

using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::int_spec;

namespace fc = feature_column;
using feature_column::Column;
using layers::DenseFeatures;
using layers::SequenceFeatures;
using testing_support::values_of;
using Values = std::vector<float>;

Column identity(const std::string& key) { return fc::categorical_column_with_identity(key, 4); }
Column sequence(const std::string& key, int64_t length = 2) {
  return tpu::embedding_column(fc::sequence_categorical_column_with_identity(key, 4), 1,
                               {.max_sequence_length = length});
}

TEST(DenseFeatures, ConcatenatesColumnsByName) {
  const DenseFeatures layer(
      {.feature_columns = {fc::numeric_column("z"), tpu::embedding_column(identity("b"), 2),
                           tpu::embedding_column(identity("a"), 1)}});
  const Tensors features = {{"a", Tensor::from<float>({1, 2}, {2, 1})},
                            {"b", Tensor::from<float>({3, 4, 5, 6}, {2, 2})},
                            {"z", Tensor::from<int64_t>({7, 8}, {2})},
                            {"other", Tensor::zeros({2})}};
  EXPECT_EQ(values_of(layer(features).tensor()), Values({1, 3, 4, 7, 2, 5, 6, 8}));
  EXPECT_TRUE(layer->weights().empty());
}

TEST(DenseFeatures, PassesGradientsToActivations) {
  const Tensor a = Tensor::from<float>({1, 2}, {2, 1});
  for (const bool alone : {true, false}) {
    std::vector<Column> columns = {tpu::embedding_column(identity("a"), 1)};
    if (!alone) columns.push_back(fc::numeric_column("z"));
    const DenseFeatures layer({.feature_columns = columns});
    GradientTape tape;
    tape.watch(a);
    const Tensors features = {{"a", a}, {"z", Tensor::zeros({2})}};
    const auto gradients = tape.input_gradient(ops::sum(layer(features).tensor()), {a});
    ASSERT_TRUE(gradients[0]);
    EXPECT_EQ(values_of(gradients[0].dense()), Values({1, 1}));
  }
}

TEST(DenseFeatures, LooksUpOrdinaryColumnsInItsOwnTables) {
  const auto words =
      fc::categorical_column_with_vocabulary_list("w", std::vector<std::string>{"x", "y"});
  const Column weighted = fc::weighted_categorical_column(identity("i"), "iw");
  const DenseFeatures layer(
      {.feature_columns = {fc::embedding_column(words, 1),
                           fc::embedding_column(weighted, 1, {.combiner = "sum"})},
       .name = "inputs"});
  const Tensors features = {{"w", RaggedTensor::from_rows<std::string>({{"y", "x", "?"}, {"?"}})},
                            {"i", RaggedTensor::from_rows<int64_t>({{0, 3}, {}})},
                            {"iw", RaggedTensor::from_rows<float>({{2, 0.5}, {}})}};
  layer(features);
  ASSERT_EQ(layer->weights().size(), 2U);
  // Sorted by column name: i_weighted_by_iw_embedding, w_embedding.
  EXPECT_EQ(layer->weights()[1].path(), "inputs/w_embedding/embedding_weights");
  layer->weights()[0].assign(Tensor::from<float>({1, 2, 3, 4}, {4, 1}));
  layer->weights()[1].assign(Tensor::from<float>({10, 20}, {2, 1}));
  EXPECT_EQ(values_of(layer(features).tensor()), Values({4, 15, 0, 0}));
}

TEST(DenseFeatures, RejectsUnsupportedColumnsAndFeatures) {
  EXPECT_THROW(DenseFeatures({}), ValueError);
  EXPECT_THROW(DenseFeatures({.feature_columns = {identity("a")}}), TypeError);
  EXPECT_THROW(DenseFeatures({.feature_columns = {nullptr}}), TypeError);
  EXPECT_THROW(DenseFeatures({.feature_columns = {sequence("s")}}), ValueError);
  EXPECT_THROW(DenseFeatures({.feature_columns = {fc::embedding_column(
                                  fc::sequence_categorical_column_with_identity("s", 4), 1)}}),
               ValueError);
  const DenseFeatures layer({.feature_columns = {tpu::embedding_column(identity("a"), 2)}});
  EXPECT_THROW(layer(Tensors({{"b", Tensor::zeros({1, 2})}})), ValueError);
  EXPECT_THROW(layer(Tensors({{"a", Tensor::zeros({1, 3})}})), ValueError);
  EXPECT_THROW(layer(Tensors({{"a", Tensor::zeros({1}, DType::kInt64)}})), TypeError);
  EXPECT_THROW(layer(Tensors({{"a", RaggedTensor::from_rows<int64_t>({{1}})}})), TypeError);
}

TEST(SequenceFeatures, ReturnsStepsAndLengths) {
  const SequenceFeatures layer({.feature_columns = {sequence("b"), sequence("a")}});
  const Tensors out = layer(Tensors({{"a", Tensor::from<float>({1, 2}, {1, 2, 1})},
                                     {"b", Tensor::from<float>({3, 4}, {1, 2, 1})},
                                     {"a_seq_length_", Tensor::from<int64_t>({2}, {1})}}));
  EXPECT_EQ(values_of(out[0].tensor()), Values({1, 3, 2, 4}));
  EXPECT_EQ(out[0].tensor().shape(), Shape({1, 2, 2}));
  EXPECT_EQ(out[1].tensor().item<int64_t>(), 2);
}

TEST(SequenceFeatures, RejectsOtherColumnsAndDifferentLengths) {
  EXPECT_THROW(SequenceFeatures({}), ValueError);
  EXPECT_THROW(SequenceFeatures({.feature_columns = {tpu::embedding_column(identity("a"), 1)}}),
               ValueError);
  EXPECT_THROW(SequenceFeatures({.feature_columns = {sequence("a", 2), sequence("b", 3)}}),
               ValueError);
  const SequenceFeatures layer({.feature_columns = {sequence("a")}});
  EXPECT_THROW(layer(Tensors({{"a", Tensor::zeros({1, 2, 1})}})), ValueError);
}

// Encodes and decodes every kind of column.
TEST(DenseFeatures, RoundTripsThroughItsConfig) {
  const auto words = std::vector<std::string>{"x", "y", "z"};
  const std::vector<Column> columns = {
      fc::numeric_column("n", {.shape = {2}}),
      fc::embedding_column(
          fc::categorical_column_with_vocabulary_list("v", words, {.num_oov_buckets = 2}), 3,
          {.combiner = "sqrtn", .initializer = initializers::ones()}),
      fc::embedding_column(
          fc::categorical_column_with_vocabulary_list("i", std::vector<int64_t>{7, 5}), 1),
      fc::embedding_column(fc::categorical_column_with_hash_bucket("h", 9), 1),
      fc::embedding_column(fc::weighted_categorical_column(identity("w"), "weights"), 1),
      tpu::embedding_column(fc::categorical_column_with_identity("t", 5, 2), 2,
                            {.embedding_lookup_device = "tpu_tensor_core", .tensor_core_width = 3}),
      tpu::shared_embedding_columns({identity("s"), identity("r")}, 2)[0]};
  const DenseFeatures layer({.feature_columns = columns, .name = "inputs"});
  const Config config = layer->get_config();
  const auto again = layers::deserialize(
      Config::dict({{"class_name", "DenseFeatures"}, {"config", parse_json(to_json(config))}}));
  EXPECT_EQ(to_json(again->get_config()), to_json(config));
  const auto& made = dynamic_cast<const DenseFeaturesLayer&>(*again).feature_columns();
  ASSERT_EQ(made.size(), columns.size());
  for (const Column& c : made) {
    const auto* shared = dynamic_cast<const tpu::TPUEmbeddingColumn*>(c.get());
    if (shared == nullptr || !shared->is_shared()) continue;
    EXPECT_EQ(shared->table_name(), "tbl_r_s_shared_embedding");
  }
}

TEST(FeatureColumnConfigs, RejectUnserializableAndUnknownClasses) {
  const auto normalized =
      fc::numeric_column("n", {.normalizer_fn = [](const Tensor& x) { return x; }});
  EXPECT_THROW(encode(Column(normalized)), NotImplementedError);
  Column out;
  EXPECT_THROW(
      decode(Config::dict({{"class_name", "Bucketized"}, {"config", Config::dict()}}), out),
      ValueError);
}

TEST(DenseFeatures, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "DenseFeatures",
                         .config = R"({"name": "dense_columns", "feature_columns": [
    {"class_name": "NumericColumn", "config": {"key": "n", "shape": [3]}}]})",
                         .inputs = Specs({{"n", Specs(float_spec({2, 3}))}}),
                         .output = float_spec({2, 3})});
  expect_layer_contract({.class_name = "SequenceFeatures",
                         .config = R"({"name": "sequence", "feature_columns": [
    {"class_name": "TPUEmbeddingColumn", "config": {"dimension": 4, "max_sequence_length": 3,
     "categorical_column": {"key": "s", "num_buckets": 9, "sequence": true}}}]})",
                         .inputs = Specs({{"s", Specs(float_spec({2, 3, 4}))},
                                          {"s_seq_length_", Specs(int_spec({2}))}}),
                         .output = Specs::tuple({float_spec({2, 3, 4}), int_spec({2})})});
}

}  // namespace keel::dense_features_test
