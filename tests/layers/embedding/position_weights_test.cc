#include <keel/layers/embedding/position_weights.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::position_weights_test {

using testing::HasSubstr;
using testing_support::expect_layer_contract;
using testing_support::floats;
using testing_support::IdRows;
using testing_support::matrix;
using testing_support::message_of;
using testing_support::ragged;
using testing_support::sparse;
using testing_support::values_of;
using Values = std::vector<float>;

layers::PositionWeights built(const Values& weights) {
  layers::PositionWeights layer({.max_length = std::ssize(weights)});
  layer->build(Specs(TensorSpec{
      .shape = {kUnknown, kUnknown}, .dtype = DType::kInt64, .layout = Layout::kRagged}));
  layer->position_weights().assign(floats(weights));
  return layer;
}

TEST(PositionWeightsTest, FulfillsTheContractOfLayers) {
  const auto rows = [](DType dtype) {
    return TensorSpec{.shape = {2, kUnknown}, .dtype = dtype, .layout = Layout::kRagged};
  };
  expect_layer_contract({.class_name = "PositionWeights",
                         .config = R"({"max_length": 3, "initializer": "zeros"})",
                         .inputs = rows(DType::kInt64),
                         .output = rows(DType::kFloat32),
                         .trainable_weights = 1,
                         .weights = 1});
}

TEST(PositionWeightsTest, ItsConfigCreatesAnEqualLayer) {
  const Config config = Config::dict(
      {{"class_name", "PositionWeights"},
       {"config", Config::dict({{"name", "p"}, {"max_length", 3}, {"initializer", "zeros"}})}});
  const LayerHandle<Layer> layer = layers::deserialize(config);
  EXPECT_EQ(layer->get_config()["max_length"].integer(), 3);
  EXPECT_EQ(layers::deserialize(layers::serialize(*layer))->get_config(), layer->get_config());
  layer->build(Specs(ragged(IdRows{{1}}).spec()));
  ASSERT_EQ(layer->trainable_variables().size(), 1U);
  EXPECT_EQ(values_of(layer->trainable_variables()[0]), (Values{0, 0, 0}));
}

TEST(PositionWeightsTest, OutputsOfAModelHaveTheLayoutOfItsInputs) {
  const Tensors ids = layers::ragged_input({.dtype = DType::kInt64, .name = "ids"});
  const layers::PositionWeights positions({.max_length = 2, .initializer = "ones"});
  const Table table = make_table(
      {.vocabulary_size = 3, .dim = 1, .initializer = tpu::RowIdInitializer(1), .combiner = "sum"});
  const layers::TPUEmbedding embedding({.feature_config = FeatureConfig{.table = table}});
  const Tensors weights = positions(ids);
  EXPECT_EQ(weights.leaf().layout(), Layout::kRagged);
  EXPECT_EQ(weights.leaf().spec().dtype, DType::kFloat32);
  const Functional model(
      {.inputs = ids,
       .outputs = embedding(ids, {.weights = Nest<std::optional<TensorLike>>(weights.leaf())})});
  positions->position_weights().assign(floats({2, 3}));
  EXPECT_EQ(values_of(model(Tensors(ragged(IdRows{{0, 2}, {1}})))), (Values{11, 4}));
}

TEST(PositionWeightsTest, GivesEachIdTheWeightOfItsPosition) {
  const layers::PositionWeights layer = built({0.5, 2, 3});
  const Tensors of_ragged = layer(Tensors(ragged(IdRows{{7, 8}, {}, {9, 9, 9, 9}})));
  EXPECT_EQ(of_ragged.leaf().values().to_vector<float>(), (Values{0.5, 2, 0.5, 2, 3, 0}));
  EXPECT_EQ(of_ragged.leaf().ragged().row_splits.to_vector<int64_t>(),
            (std::vector<int64_t>{0, 2, 2, 6}));
  const TensorLike at = testing_support::sparse_at(IdRows{{0, 1}, {1, 0}, {1, 3}},
                                                   std::vector<int64_t>{4, 5, 6}, {2, 4});
  EXPECT_EQ(layer(Tensors(at)).leaf().values().to_vector<float>(), (Values{2, 0.5, 0}));
}

TEST(PositionWeightsTest, TrainsWithTheTablesUnderEveryStrategy) {
  const Tensor table = matrix({{1, 2}, {3, 4}, {5, 6}});
  const TensorLike ids = ragged(IdRows{{0, 1}, {2}});
  for (const int cores : {0, 1, 2}) {
    SCOPED_TRACE(cores);
    std::unique_ptr<distribute::Strategy> strategy = std::make_unique<distribute::CPUStrategy>();
    if (cores > 0) {
      strategy = std::make_unique<distribute::TPUStrategy>(
          distribute::TPUStrategyOptions{.num_cores = cores});
    }
    const auto scope = strategy->scope();
    const layers::PositionWeights positions = built({0.5, 2});
    const Table config = make_table({.vocabulary_size = 3, .dim = 2, .combiner = "sum"});
    const layers::TPUEmbedding embedding({.feature_config = FeatureConfig{.table = config},
                                          .optimizer = tpu::SGD{.learning_rate = 1}});
    embedding->build(Specs(ids.spec()));
    embedding->update_embedding_table(config, table);
    strategy->run([&] {
      GradientTape tape;
      const Tensor found =
          embedding(Tensors(ids),
                    {.weights = Nest<std::optional<TensorLike>>(positions(Tensors(ids)).leaf())})
              .tensor();
      // 0.5 (1 2) + 2 (3 4), and 0.5 (5 6)
      EXPECT_EQ(found.to_vector<float>(), (Values{6.5, 9, 2.5, 3}));
      std::vector<Variable> variables = embedding->trainable_variables();
      variables.push_back(positions->position_weights());
      const auto gradients = tape.gradient(ops::sum(found), variables);
      // Position 0 has the rows (1 2) and (5 6), position 1 the row (3 4).
      EXPECT_EQ(gradients.back().dense().to_vector<float>(), (Values{14, 7}));
      if (cores == 0) {
        EXPECT_EQ(gradients[0].dense().to_vector<float>(), (Values{0.5, 0.5, 2, 2, 0.5, 0.5}));
      }
    });
    if (cores == 1) {
      EXPECT_EQ(embedding->embedding_tables()[0].second.to_vector<float>(),
                (Values{0.5, 1.5, 1, 2, 4.5, 5.5}));
    }
  }
}

TEST(PositionWeightsTest, TrainsWithEmbedReduce) {
  const layers::PositionWeights positions = built({0.5, 2});
  const layers::EmbedReduce embedding({.input_dim = 3, .output_dim = 2, .combiner = "mean"});
  const TensorLike ids = sparse(IdRows{{0, 1}, {2}}, 2);
  embedding->build(Specs(ids.spec()));
  embedding->embeddings().assign(matrix({{1, 2}, {3, 4}, {5, 6}}));
  GradientTape tape;
  const Tensor found =
      embedding(Tensors(ids), {.weights = positions(Tensors(ids)).leaf()}).tensor();
  EXPECT_EQ(found.to_vector<float>(), (Values{2.6F, 3.6F, 5, 6}));
  const auto g =
      tape.gradient(ops::sum(found), {positions->position_weights(), embedding->embeddings()});
  // d mean / d w_k is (row_k - mean) / 2.5: (-1.6 - 1.6) / 2.5 and (0.4 + 0.4) / 2.5.
  EXPECT_NEAR(g[0].dense().data<float>()[0], -1.28, 1e-5);
  EXPECT_NEAR(g[0].dense().data<float>()[1], 0.32, 1e-5);
  EXPECT_NEAR(g[1].dense().data<float>()[0], 0.2, 1e-6);
  EXPECT_NEAR(g[1].dense().data<float>()[2], 0.8, 1e-6);
}

TEST(PositionWeightsTest, RejectsDenseIds) {
  const layers::PositionWeights layer({.max_length = 2});
  EXPECT_THAT(message_of<ValueError>([&] { layer(Tensors(testing_support::ids({1, 2}))); }),
              HasSubstr("must be sparse or ragged"));
  EXPECT_THROW(layers::PositionWeights({}), ValueError);
}

}  // namespace keel::position_weights_test
