#include <keel/layers/core/reversible_embedding.h>

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/tape.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::reversible_embedding_test {

using layers::ReversibleEmbedding;
using testing::HasSubstr;
using testing_support::expect_layer_contract;
using testing_support::message_of;
using Floats = std::vector<float>;

ReversibleEmbedding with_table(ReversibleEmbeddingOptions options) {
  options.input_dim = 3;
  options.output_dim = 2;
  const ReversibleEmbedding layer(std::move(options));
  layer->build(testing_support::int_spec({kUnknown, 2}));
  layer->embeddings().assign(Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2}));
  return layer;
}

TEST(ReversibleEmbeddingTest, LooksUpRowsAndProjectsBack) {
  const ReversibleEmbedding layer = with_table({});
  const Tensor rows = layer(Tensor::from<int64_t>({2, 0}, {1, 2}));
  EXPECT_EQ(rows.to_vector<float>(), Floats({5, 6, 1, 2}));
  const Tensor scores = layer(Tensor::from<float>({1, 0, 1, -1}, {2, 2}), {.reverse = true});
  EXPECT_EQ(scores.shape(), Shape({2, 3}));
  EXPECT_EQ(scores.to_vector<float>(), Floats({1, 3, 5, -1, -1, -1}));
}

TEST(ReversibleEmbeddingTest, WeightsThatAreNotTiedProject) {
  const ReversibleEmbedding layer = with_table({.tie_weights = false});
  ASSERT_EQ(layer->weights().size(), 2u);
  EXPECT_EQ(layer->reverse_embeddings().path(), layer->name() + "/reverse_embeddings");
  layer->reverse_embeddings().assign(Tensor::from<float>({1, 0, 2, 0, 1, 3}, {2, 3}));
  const Tensor scores = layer(Tensor::from<float>({2, 1}, {1, 2}), {.reverse = true});
  EXPECT_EQ(scores.to_vector<float>(), Floats({2, 1, 7}));
}

TEST(ReversibleEmbeddingTest, LimitsScores) {
  const ReversibleEmbedding layer = with_table({.logit_soft_cap = 2});
  const Tensor scores = layer(Tensor::from<float>({1, 0}, {1, 2}), {.reverse = true});
  EXPECT_NEAR(scores.to_vector<float>()[0], 2 * std::tanh(0.5), 1e-6);
  EXPECT_NEAR(scores.to_vector<float>()[2], 2 * std::tanh(2.5), 1e-6);
}

TEST(ReversibleEmbeddingTest, ProjectsInAnotherDtype) {
  const ReversibleEmbedding layer = with_table({.reverse_dtype = DType::kFloat64});
  const Tensor scores = layer(Tensor::from<float>({1, 0}, {1, 2}), {.reverse = true});
  EXPECT_EQ(scores.dtype(), DType::kFloat64);
  EXPECT_EQ(scores.to_vector<double>(), std::vector<double>({1, 3, 5}));
}

TEST(ReversibleEmbeddingTest, OnlyLookupsHaveAMask) {
  const ReversibleEmbedding layer = with_table({.mask_zero = true});
  const Tensor rows = layer(Tensor::from<int64_t>({2, 0}, {1, 2}));
  EXPECT_EQ(rows.mask().to_vector<bool>(), std::vector({true, false}));
  EXPECT_FALSE(layer(Tensor::zeros({1, 2}), {.reverse = true}).mask());
}

TEST(ReversibleEmbeddingTest, BothDirectionsTrainOneTable) {
  const ReversibleEmbedding layer = with_table({});
  GradientTape tape;
  const Tensor ids = Tensor::from<int64_t>({1}, {1, 1});
  const Tensor y = ops::sum(layer(layer(ids), {.reverse = true}));
  // y = e_1 . (e_0 + e_1 + e_2)
  const Tensor gradient = tape.gradient(y, {layer->embeddings()})[0].dense();
  EXPECT_EQ(gradient.to_vector<float>(), Floats({3, 4, 12, 16, 3, 4}));
}

// A model that uses the layer at both ends.
Functional language_model() {
  const Tensor ids = layers::input({.shape = {4}, .dtype = DType::kInt64, .name = "ids"});
  const ReversibleEmbedding table({.input_dim = 3, .output_dim = 2, .name = "table"});
  const Tensor hidden = layers::Dense({.units = 2, .name = "hidden"})(table(ids));
  return Functional({.inputs = ids, .outputs = table(hidden, {.reverse = true}), .name = "lm"});
}

TEST(ReversibleEmbeddingTest, GraphsAndTheirConfigsKeepTheDirection) {
  const Functional model = language_model();
  const Tensor ids = Tensor::from<int64_t>({0, 1, 2, 1}, {1, 4});
  const Tensor y = model(ids);
  EXPECT_EQ(y.shape(), Shape({1, 4, 3}));
  const Config config = layers::serialize(*model);
  EXPECT_THAT(to_json(config), HasSubstr(R"(["hidden", 0, 0, {"reverse": true}])"));
  const auto copy = layers::deserialize(parse_json(to_json(config)));
  EXPECT_EQ(to_json(layers::serialize(*copy)), to_json(config));
  const std::vector<Variable> from = model->weights(), to = copy->weights();
  for (size_t i = 0; i < from.size(); ++i) to[i].assign(from[i].read());
  EXPECT_EQ(copy(ids).to_vector<float>(), y.to_vector<float>());
}

TEST(ReversibleEmbeddingTest, RejectsInvalidOptionsAndInputs) {
  EXPECT_THROW(ReversibleEmbedding({.input_dim = 3}), ValueError);
  EXPECT_THROW(ReversibleEmbedding({.input_dim = 3, .output_dim = 2, .logit_soft_cap = 0}),
               ValueError);
  EXPECT_THROW(
      ReversibleEmbedding({.input_dim = 3, .output_dim = 2, .reverse_dtype = DType::kInt64}),
      ValueError);
  const ReversibleEmbedding layer = with_table({});
  const Tensor x = Tensor::zeros({1, 2});
  EXPECT_THAT(message_of<ValueError>([&] { layer(Tensors::list({x, x})); }),
              HasSubstr("'inputs' and 'reverse'"));
  EXPECT_THROW(layer(Tensor::from<int64_t>({3}, {1, 1})), ValueError);
}

TEST(ReversibleEmbeddingTest, MeetsTheContractOfLayers) {
  expect_layer_contract(
      {.class_name = "ReversibleEmbedding",
       .config = R"({"input_dim": 5, "output_dim": 3, "logit_soft_cap": 2.0, "mask_zero": true})",
       .inputs = testing_support::int_spec({2, 4}),
       .output = testing_support::float_spec({2, 4, 3}),
       .trainable_weights = 1,
       .weights = 1});
}

}  // namespace keel::reversible_embedding_test
