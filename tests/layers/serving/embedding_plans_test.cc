// Serving plans of maxima and of weights of dense ids: the bits of the model without a called
// layer. Tests layers/embedding/internal/id_rows_plan.cc, weighted_rows_step.cc and
// layers/serving/steps/internal/lookup_step.cc.
#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/embedding/distributed/distributed_embedding.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/serving/serving_plan.h>

#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::embedding_plans_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::expect_same_bits;
using testing_support::floats;
using testing_support::IdRows;
using testing_support::ids;
using testing_support::message_of;
using testing_support::ragged;
using testing_support::sparse;
using testing_support::values_of;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

void expect_bits_of_model(const Functional& model, const Tensors& batch) {
  const ServingPlan plan{ModelHandle(model)};
  EXPECT_THAT(plan.called_layers(), IsEmpty()) << plan.summary();
  const std::vector<TensorLike> found = flatten(plan(batch)), expected = flatten(model(batch));
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE(i);
    expect_same_bits(found[i].tensor(), expected[i].tensor());
  }
}

Tensor int_input(const char* name, const Shape& shape = {}) {
  return layers::input({.shape = shape, .dtype = DType::kInt64, .name = name});
}
TensorLike rows_input(const char* name) {
  return layers::ragged_input({.dtype = DType::kInt64, .name = name});
}
TensorLike grid_input(const char* name) {
  return layers::sparse_input({.shape = {3}, .dtype = DType::kInt64, .name = name});
}

// 6 rows of 3 columns with signed zeros and a NaN.
Tensor values() {
  return floats({-1, 2, -0.0F, 3, -5, 0, -2, 2, -0.0F, 0, -7, -0.0F, -4, 8, -0.0F, 1, 1, kNaN},
                {6, 3});
}

TEST(EmbeddingPlansTest, MaximaOfRaggedAndSparseIds) {
  for (const bool dynamic : {false, true}) {
    SCOPED_TRACE(dynamic);
    const Table items =
        make_table({.vocabulary_size = dynamic ? 0 : 6,
                    .dim = 3,
                    .combiner = "max",
                    .name = "items",
                    .dynamic = dynamic ? std::optional<DynamicVocabulary>(DynamicVocabulary{
                                             .not_admitted = NotAdmitted::default_row()})
                                       : std::nullopt});
    const layers::TPUEmbedding layer({.feature_config = {{"grid", FeatureConfig{.table = items}},
                                                         {"one", FeatureConfig{.table = items}},
                                                         {"rows", FeatureConfig{.table = items}}}});
    const Tensors inputs = {
        {"grid", grid_input("grid")}, {"one", int_input("one")}, {"rows", rows_input("rows")}};
    const Functional model({.inputs = inputs, .outputs = layer(inputs)});
    if (dynamic) {
      layer->dynamic_table(items).assign_rows(ids({0, 1, 2, 3, 4, 5}), values());
    } else {
      layer->update_embedding_table(items, values());
    }
    // Empty rows are zeros, not the greatest of nothing; ids that are not admitted read a row.
    const int64_t other = dynamic ? 99 : 1;
    expect_bits_of_model(model, {{"grid", sparse(IdRows{{0, 2}, {}, {4, 3, 0}, {5, 1}}, 3)},
                                 {"one", ids({2, 0, 5, other})},
                                 {"rows", ragged(IdRows{{0, 2, 4}, {1, 5, 3}, {}, {other, 4}})}});
  }
}

TEST(EmbeddingPlansTest, MaximaLeaveIgnoredIdsOutAndSequencesCopyRows) {
  const Table items =
      make_table({.dim = 3, .combiner = "max", .name = "items", .dynamic = DynamicVocabulary{}});
  const auto feature = [&](int64_t length) {
    return FeatureConfig{
        .table = items, .max_sequence_length = length, .id_policy = IdPolicy::ignore()};
  };
  const layers::TPUEmbedding layer(
      {.feature_config = {{"rows", feature(0)}, {"steps", feature(2)}}});
  const Tensors inputs = {{"rows", rows_input("rows")}, {"steps", rows_input("steps")}};
  const Functional model({.inputs = inputs, .outputs = layer(inputs)});
  layer->dynamic_table(items).assign_rows(ids({0, 1, 2, 3, 4, 5}), values());
  expect_bits_of_model(model, {{"rows", ragged(IdRows{{-3, 0, 2}, {-1}, {4, -2}})},
                               {"steps", ragged(IdRows{{0, 2, 4}, {-1, 3}, {}})}});
}

// Weights of dense ids of a static table and a table with dynamic ids.
TEST(EmbeddingPlansTest, WeightsOfDenseIds) {
  for (const char* const combiner : {"sum", "mean", "sqrtn"}) {
    for (const int64_t n : {1, 3, 4, 7, 8, 11, 40}) {
      for (const bool dynamic : {false, true}) {
        SCOPED_TRACE(str(combiner, ' ', n, ' ', dynamic));
        const layers::EmbedReduce layer(
            {.input_dim = dynamic ? 0 : 6,
             .output_dim = 3,
             .combiner = combiner,
             .dynamic = dynamic ? std::optional(DynamicVocabulary{}) : std::nullopt});
        const Tensor x = int_input("x", {n}), w = layers::input({.shape = {n}, .name = "w"});
        const Functional model(
            {.inputs = Tensors::list({x, w}), .outputs = layer(x, {.weights = TensorLike(w)})});
        const Tensor rows = testing_support::normal({6, 3}, 4);
        if (dynamic) {
          layer->dynamic_table().assign_rows(ids({0, 1, 2, 3, 4, 5}), rows);
        } else {
          layer->embeddings().assign(rows);
        }
        std::mt19937_64 random(n);
        for (const int64_t batch : {1, 3, 70}) {
          std::vector<int64_t> numbers;
          for (int64_t i = 0; i < batch * n; ++i) {
            numbers.push_back(static_cast<int64_t>(random() % (dynamic ? 8 : 6)));
          }
          Tensor weights = testing_support::normal({batch, n}, 7);
          std::fill_n(weights.mutable_data<float>().begin(), n, 0.0F);  // a divisor of 0
          expect_bits_of_model(model, Tensors::list({ids(numbers, {batch, n}), weights}));
        }
      }
    }
  }
}

TEST(EmbeddingPlansTest, AWeightForEachRow) {
  const layers::EmbedReduce layer({.input_dim = 6, .output_dim = 3, .combiner = "sum"});
  const Tensor x = int_input("x"), w = layers::input({.shape = {}, .name = "w"});
  const Functional model(
      {.inputs = Tensors::list({x, w}), .outputs = layer(x, {.weights = TensorLike(w)})});
  layer->embeddings().assign(values());
  expect_bits_of_model(model, Tensors::list({ids({0, 2, 4}), floats({2, -1, 0.5F})}));
}

TEST(EmbeddingPlansTest, WeightsThatAreNotFiniteAreValueErrors) {
  const layers::EmbedReduce layer({.input_dim = 6, .output_dim = 3, .name = "items"});
  const Tensor x = int_input("x", {2}), w = layers::input({.shape = {2}, .name = "w"});
  const Functional model(
      {.inputs = Tensors::list({x, w}), .outputs = layer(x, {.weights = TensorLike(w)})});
  const ServingPlan plan{ModelHandle(model)};
  const Tensors batch =
      Tensors::list({ids({0, 1, 2, 3}, {2, 2}), floats({1, 2, 3, INFINITY}, {2, 2})});
  const std::string message = message_of<ValueError>([&] { plan(batch); });
  EXPECT_THAT(message, HasSubstr("EmbedReduce items: the weight at position 3 is inf"));
  EXPECT_EQ(message, message_of<ValueError>([&] { model(batch); }));
}

// A weight for each element, and ids that may be left out, have no step.
TEST(EmbeddingPlansTest, OtherWeightsCallTheLayer) {
  const auto called = [](const layers::EmbedReduce& layer, const Shape& weights) {
    const Tensor x = int_input("x", {2}), w = layers::input({.shape = weights, .name = "w"});
    const Functional model(
        {.inputs = Tensors::list({x, w}), .outputs = layer(x, {.weights = TensorLike(w)})});
    return ServingPlan{ModelHandle(model)}.called_layers();
  };
  EXPECT_THAT(called(layers::EmbedReduce({.input_dim = 6, .output_dim = 3, .name = "a"}), {2, 3}),
              ElementsAre("a"));
  EXPECT_THAT(called(layers::EmbedReduce(
                         {.output_dim = 3,
                          .dynamic = DynamicVocabulary{.not_admitted = NotAdmitted::ignore()},
                          .name = "b"}),
                     {2}),
              ElementsAre("b"));
}

TEST(EmbeddingPlansTest, LayersOfKerasRsWithStaticTables) {
  for (const char* const combiner : {"sum", "mean", "sqrtn"}) {
    SCOPED_TRACE(combiner);
    const auto table = keras_rs::make_table(
        {.name = "items", .vocabulary_size = 6, .embedding_dim = 3, .combiner = combiner});
    const auto feature = [&](const Shape& shape) {
      return keras_rs::FeatureConfig{
          .name = "feature", .table = table, .input_shape = shape, .output_shape = {kUnknown, 3}};
    };
    // Rows of "rows" end after 2 ids.
    const layers::DistributedEmbedding layer(
        {.feature_configs = {{"many", feature({kUnknown, 3})},
                             {"one", feature({kUnknown})},
                             {"rows", feature({kUnknown, 2})}}});
    const layers::EmbedReduce reduce({.input_dim = 6, .output_dim = 3, .combiner = combiner});
    const Tensors inputs = {
        {"many", int_input("many", {3})}, {"one", int_input("one")}, {"rows", rows_input("rows")}};
    const Tensors weights = {{"w", layers::input({.shape = {3}, .name = "w"})}};
    const std::optional<TensorLike> none;
    using Weights = Nest<std::optional<TensorLike>>;
    const Tensors found =
        layer(inputs, {.weights = Weights{{"many", std::optional<TensorLike>(weights["w"].leaf())},
                                          {"one", none},
                                          {"rows", none}}});
    Tensors::Dict all = inputs.entries();
    all.emplace("w", weights["w"]);
    const Functional model(
        {.inputs = Tensors(std::move(all)),
         .outputs = Tensors::list({found, reduce(inputs["rows"]), reduce(inputs["one"])})});
    expect_bits_of_model(model, {{"many", ids({0, 1, 2, 3, 3, 3}, {2, 3})},
                                 {"one", ids({5, 0})},
                                 {"rows", ragged(IdRows{{1, 2, 3}, {}})},
                                 {"w", floats({1, 2, 3, -1, 0.5F, 0.25F}, {2, 3})}});
    const ServingPlan plan{ModelHandle(model)};
    const Tensors bad = {{"many", ids({0, 1, 2, 3, 3, 3}, {2, 3})},
                         {"one", ids({5, 6})},
                         {"rows", ragged(IdRows{{}, {}})},
                         {"w", floats({1, 2, 3, -1, 0.5F, 0.25F}, {2, 3})}};
    EXPECT_THAT(message_of<ValueError>([&] { plan(bad); }), HasSubstr("6"));
  }
}

}  // namespace keel::embedding_plans_test
