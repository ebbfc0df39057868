#include <keel/layers/embedding/partial_tpu_embedding.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/embedding_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"

namespace keel::partial_tpu_embedding_test {

using distribute::TPUStrategy;
using fixture::expect_rows;
using fixture::expect_tensor;
using fixture::IdRows;
using fixture::ids;
using fixture::ragged;
using layers::PartialTPUEmbedding;
using testing::AllOf;
using testing::HasSubstr;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::int_spec;
using testing_support::message_of;

struct Tables {
  Table large = make_table({.vocabulary_size = 20, .dim = 1, .initializer = "row_id"});
  Table small = make_table({.vocabulary_size = 10, .dim = 1, .initializer = "row_id"});
  // The small table has two features.
  Nest<FeatureConfig> features(const IdPolicy& policy = {}) const {
    return {{"a", FeatureConfig{.table = large}},
            {"b", FeatureConfig{.table = small, .id_policy = policy}},
            {"c", FeatureConfig{.table = small, .max_sequence_length = 3}}};
  }
  PartialTPUEmbedding layer(std::optional<int64_t> threshold, const IdPolicy& policy = {}) const {
    return PartialTPUEmbedding(
        {.feature_config = features(policy), .optimizer = "sgd", .size_threshold = threshold});
  }
};

Tensors batch(int64_t b = 4) {
  return {{"a", ragged(IdRows{{19, 1}, {2}})}, {"b", ids({3, b}, {2})}, {"c", ids({5, 6}, {2, 1})}};
}

TEST(PartialTPUEmbeddingTest, TablesAboveTheThresholdGoToTheEngine) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const PartialTPUEmbedding layer = Tables().layer(10);
  layer->build(specs_of(batch()));
  ASSERT_TRUE(layer->tpu_embedding());
  EXPECT_EQ((*layer->tpu_embedding())->embedding_tables().size(), 1U);
  EXPECT_EQ(layer->keras_embedding_layers().size(), 2U);
  EXPECT_EQ(layer->keras_embedding_layers().at("b").shared(),
            layer->keras_embedding_layers().at("c").shared());
  // The small table and the virtual variable of the large one.
  EXPECT_EQ(layer->trainable_variables().size(), 2U);
  strategy.run([&] {
    const Tensors out = layer(batch());
    expect_rows(out["a"].tensor(), {{10}, {2}});
    expect_rows(out["b"].tensor(), {{3}, {4}});
    expect_tensor(out["c"].tensor(), {2, 1, 1}, {5, 6});
  });
}

TEST(PartialTPUEmbeddingTest, TablesUpToTheThresholdAreSmall) {
  const Tables t;
  EXPECT_EQ(t.layer(20)->tpu_embedding(), std::nullopt);
  EXPECT_EQ(t.layer(std::nullopt)->tpu_embedding(), std::nullopt);
  EXPECT_EQ(t.layer(std::nullopt)->keras_embedding_layers().size(), 3U);
  const PartialTPUEmbedding all_large = t.layer(0);
  EXPECT_TRUE(all_large->tpu_embedding());
  EXPECT_TRUE(all_large->keras_embedding_layers().empty());
  EXPECT_THROW(t.layer(-1), ValueError);
  EXPECT_EQ(PartialTPUEmbeddingOptions().size_threshold, 10000);
}

TEST(PartialTPUEmbeddingTest, SmallTablesRequireDenseIds) {
  const PartialTPUEmbedding layer = Tables().layer(10);
  Tensors::Dict wrong = batch().entries();
  wrong["b"] = ragged(IdRows{{1}, {2}});
  EXPECT_THROW(layer(Tensors(wrong)), ValueError);
  wrong.erase("b");
  EXPECT_THROW(layer(Tensors(wrong)), ValueError);
}

TEST(PartialTPUEmbeddingTest, FeaturesMustBeAFlatDict) {
  const FeatureConfig feature = {.table = Tables().large};
  EXPECT_THROW(PartialTPUEmbedding({.feature_config = feature}), TypeError);
  EXPECT_THROW(
      PartialTPUEmbedding({.feature_config = {{"a", Nest<FeatureConfig>::list({feature})}}}),
      TypeError);
}

TEST(PartialTPUEmbeddingTest, BothKindsOfTablesAreTrainedByOneStep) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const Tables t;
  const PartialTPUEmbedding layer({.feature_config = t.features(),
                                   .optimizer = tpu::SGD{.learning_rate = 0.5},
                                   .size_threshold = 10});
  layer->build(specs_of(batch()));
  const optimizers::SGD sgd({.learning_rate = 0.25});
  strategy.run([&] {
    const auto variables = layer->trainable_variables();
    std::vector<Gradient> gradients;
    {
      GradientTape tape;
      const Tensors out = layer(batch());
      const Tensor loss = ops::sum(out["a"].tensor()) + ops::sum(out["b"].tensor());
      gradients = tape.gradient(loss, variables);
    }
    sgd->apply_gradients(gradients, variables);
  });
  const Tensor large = (*layer->tpu_embedding())->embedding_tables()[0].second;
  EXPECT_EQ(large.data<float>()[1], 0.75F) << "half the gradient of a mean of two";
  EXPECT_EQ(large.data<float>()[2], 1.5F);
  const Tensor small = layer->keras_embedding_layers().at("b")->embeddings();
  EXPECT_EQ(small.data<float>()[3], 2.75F);
  EXPECT_EQ(small.data<float>()[5], 5);
}

TEST(PartialTPUEmbeddingTest, SmallTablesObeyTheIdPolicy) {
  const Tables t;
  EXPECT_THROW(t.layer(10)(batch(10)), ValueError);
  const PartialTPUEmbedding ignoring = t.layer(10, IdPolicy::ignore());
  expect_rows(ignoring(batch(10))["b"].tensor(), {{3}, {0}});
  ASSERT_EQ(ignoring->training_notices().size(), 1U);
  EXPECT_THAT(ignoring->training_notices()[0],
              HasSubstr("'b': 1 id outside the table was dropped"));
  expect_rows(t.layer(10, IdPolicy::use_row(7))(batch(-1))["b"].tensor(), {{3}, {7}});
}

TEST(PartialTPUEmbeddingTest, SmallTablesWithoutInitializerAreUniform) {
  const Table table = make_table({.vocabulary_size = 1000, .dim = 4});
  const PartialTPUEmbedding layer({.feature_config = {{"f", FeatureConfig{.table = table}}}});
  const Tensors input = {{"f", ids({0}, {1})}};
  layer->build(specs_of(input));
  for (const float x : layer->trainable_variables()[0].read().to_vector<float>()) {
    ASSERT_LE(std::abs(x), 0.05F);
  }
}

TEST(PartialTPUEmbeddingTest, SmallTablesHaveNoPenaltiesOfRows) {
  const auto layer_with = [](const Table& table) {
    return PartialTPUEmbedding(
        {.feature_config = Nest<FeatureConfig>::Dict{{"id", FeatureConfig{.table = table}}}});
  };
  EXPECT_THAT(message_of<NotImplementedError>([&] {
                layer_with(make_table({.vocabulary_size = 3, .dim = 2, .name = "t", .l2 = 0.1}));
              }),
              AllOf(HasSubstr("'id'"), HasSubstr("l2")));
  EXPECT_THAT(
      message_of<NotImplementedError>([&] {
        layer_with(make_table({.vocabulary_size = 3, .dim = 2, .name = "t", .max_norm = 1}));
      }),
      HasSubstr("max_norm"));
}

TEST(PartialTPUEmbeddingTest, RoundTripsThroughItsConfig) {
  const PartialTPUEmbedding layer({.feature_config = Tables().features(IdPolicy::ignore()),
                                   .optimizer = "adagrad",
                                   .pipeline_execution_with_tensor_core = true,
                                   .batch_size = 16,
                                   .size_threshold = {}});
  const auto again = PartialTPUEmbeddingLayer::from_config(layer->get_config());
  EXPECT_EQ(again->get_config(), layer->get_config());
  EXPECT_EQ(again->keras_embedding_layers().size(), 3U);
}

TEST(PartialTPUEmbeddingTest, MeetsTheContractOfLayers) {
  expect_layer_contract(
      {.class_name = "PartialTPUEmbedding",
       .config = R"({"name": "partial", "size_threshold": 10, "tables": [
    {"name": "large", "vocabulary_size": 11, "dim": 4},
    {"name": "small", "vocabulary_size": 10, "dim": 3}],
    "feature_config": {"dict": {"a": {"feature": {"table": 0}}, "b": {"feature": {"table": 1}}}}})",
       .inputs = Specs({{"a", Specs(int_spec({2}))}, {"b", Specs(int_spec({2}))}}),
       .output = Specs({{"a", Specs(float_spec({2, 4}))}, {"b", Specs(float_spec({2, 3}))}}),
       .trainable_weights = 2,
       .weights = 2});
}

}  // namespace keel::partial_tpu_embedding_test
