// Tests layers/embedding/mid_level/variable_embedding.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/embedding/mid_level/embedding_base.h>
#include <keel/layers/embedding/tables/internal/tracked_tables.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/embedding_fixture.h"
#include "tests/support/errors.h"

namespace keel::tpu::tpu_embedding_for_serving_test {

using fixture::counting;
using fixture::expect_rows;
using fixture::expect_tensor;
using fixture::FloatRows;
using fixture::IdRows;
using fixture::ids;
using fixture::ragged;
using fixture::sparse;
using fixture::sparse_at;
using fixture::Standard;
using testing::HasSubstr;
using testing_support::message_of;

struct Lookup {
  TensorLike input;
  std::optional<TensorLike> weights = {};
  std::string combiner = "mean";
  FeatureConfig feature = {};
};

// Looks up ids in a 16 x 2 table that holds 0, 1, 2, ... row by row.
Tensor look_up(const Lookup& lookup) {
  FeatureConfig feature = lookup.feature;
  feature.table = make_table({.vocabulary_size = 16, .dim = 2, .combiner = lookup.combiner});
  const Variable table(counting(16, 2), {.name = "user"});
  FeatureWeights weights;
  if (lookup.weights) weights = Nest<std::optional<TensorLike>>{{"f", lookup.weights}};
  return serving_embedding_lookup({{"f", lookup.input}}, weights,
                                  EmbeddingTables{{feature.table, table}}, {{"f", feature}})["f"]
      .tensor();
}

std::string error_of(const Lookup& lookup) {
  std::string text = message_of<ValueError>([&] { look_up(lookup); });
  EXPECT_THAT(text, HasSubstr("'f'"));
  return text;
}

TEST(ServingLookupTest, ChecksComeInOrder) {
  const FeatureConfig steps = {.max_sequence_length = 2};
  const TensorLike rows = ragged(IdRows{{1}});
  const auto says = [](const std::string& text, const char* what) {
    EXPECT_THAT(text, HasSubstr(what));
  };
  const TensorLike ones = Tensor::full<float>({1}, 1);
  says(error_of({.input = ids({1}, {1}), .weights = ones, .feature = steps}), "dense ids");
  says(error_of({.input = rows, .weights = ones, .feature = steps}), "same layout");
  says(error_of({.input = rows, .weights = ragged(FloatRows{{1}}), .feature = steps}),
       "received weights for a sequence");
  says(error_of({.input = ids({1}, {1}), .feature = steps}), "requires sparse or ragged");
  says(error_of({.input = Tensor::from<std::string>({"a"}, {1})}), "int32 or int64");
}

TEST(ServingLookupTest, WeightsMustHaveTheLayoutOfTheIds) {
  error_of({.input = ragged(IdRows{{1}, {2}}), .weights = ragged(FloatRows{{1, 1}, {}})});
  error_of({.input = sparse(IdRows{{1}}, 2), .weights = ragged(FloatRows{{1}})});
}

TEST(ServingLookupTest, DenseIdsOfAnyShapeAreGathered) {
  expect_tensor(look_up({.input = ids({3, 1}, {2, 1})}), {2, 1, 2}, {6, 7, 2, 3});
  expect_tensor(look_up({.input = ids({3, 1, 0, 0}, {2, 2})}), {2, 2, 2}, {6, 7, 2, 3, 0, 1, 0, 1});
  error_of({.input = ids({-1}, {1})});
  error_of({.input = ids({16}, {1})});
}

TEST(ServingLookupTest, SafeSparseLookupsLeaveOutNegativeIdsAndWeights) {
  const IdRows at = {{0, 0}, {0, 1}, {0, 2}, {1, 0}};
  const TensorLike input = sparse_at(at, std::vector<int64_t>{3, -1, 5, 4}, {2, 3});
  const TensorLike weights = sparse_at(at, std::vector<float>{2, 1, -1, 0}, {2, 3});
  expect_rows(look_up({.input = input, .weights = weights, .combiner = "sum"}), {{2, 3}, {0, 0}});
  expect_rows(look_up({.input = input, .weights = weights, .combiner = "mean"}), {{6, 7}, {0, 0}});
  expect_rows(look_up({.input = input, .weights = weights, .combiner = "sqrtn"}), {{6, 7}, {0, 0}});
  error_of({.input = input, .feature = {.validate_weights_and_indices = false}});
  error_of({.input = sparse_at({{0, 0}}, std::vector<int64_t>{16}, {1, 1})});
}

TEST(ServingLookupTest, HighRanksAreSafeEvenWithoutValidation) {
  const TensorLike input =
      sparse_at({{0, 0, 0}, {0, 1, 0}}, std::vector<int64_t>{-1, 2}, {1, 2, 1});
  expect_tensor(look_up({.input = input, .feature = {.validate_weights_and_indices = false}}),
                {1, 2, 2}, {0, 0, 4, 5});
}

TEST(ServingLookupTest, PlainSparseLookupsUseEveryWeightAndReturnEveryRow) {
  const IdRows at = {{0, 0}, {0, 1}, {2, 0}};
  const TensorLike input = sparse_at(at, std::vector<int64_t>{1, 2, 3}, {4, 2});
  const TensorLike weights = sparse_at(at, std::vector<float>{2, -1, 1}, {4, 2});
  expect_rows(
      look_up(
          {.input = input, .weights = weights, .feature = {.validate_weights_and_indices = false}}),
      {{0, 1}, {0, 0}, {6, 7}, {0, 0}});
}

TEST(ServingLookupTest, RaggedRowsAreNeverPruned) {
  expect_rows(look_up({.input = ragged(IdRows{{1, 2}}), .weights = ragged(FloatRows{{2, -1}})}),
              {{0, 1}});
  error_of({.input = ragged(IdRows{{-1}})});
}

TEST(ServingLookupTest, ColumnsOfSparseSequencesAreSteps) {
  const TensorLike input =
      sparse_at({{0, 0}, {0, 2}, {1, 1}, {1, 3}}, std::vector<int64_t>{5, 6, 7, 1}, {2, 4});
  expect_tensor(look_up({.input = input, .feature = {.max_sequence_length = 3}}), {2, 3, 2},
                {10, 11, 0, 0, 12, 13, 0, 0, 14, 15, 0, 0});
}

TEST(ServingLookupTest, RaggedStepsOfAnOutputShapeIgnoreWeightsAndCombiner) {
  const TensorLike rows = ragged(IdRows{{1, 2}, {3}});
  const TensorLike weights = ragged(FloatRows{{5, 5}, {5}});
  expect_tensor(look_up({.input = rows,
                         .weights = weights,
                         .combiner = "sum",
                         .feature = {.output_shape = {{4}}}}),
                {4, 2}, {2, 3, 4, 5, 6, 7, 0, 0});
  const std::string text = error_of({.input = rows, .feature = {.output_shape = {{3}}}});
  EXPECT_THAT(text, HasSubstr("3"));
  EXPECT_THAT(text, HasSubstr("2 rows"));
  error_of({.input = rows, .feature = {.output_shape = {{0}}}});
}

TEST(ServingLookupTest, AnOutputShapeOnlyKeepsOtherIdsFromBeingSequences) {
  const FeatureConfig feature = {.max_sequence_length = 2, .output_shape = {{2}}};
  expect_rows(look_up({.input = sparse(IdRows{{1, 2}, {}, {3}}, 2), .feature = feature}),
              {{3, 4}, {0, 0}, {6, 7}});
  expect_tensor(look_up({.input = ids({3, 1}, {2, 1}), .feature = {.output_shape = {{2}}}}),
                {2, 1, 2}, {6, 7, 2, 3});
}

TEST(ServingLookupTest, RaggedIdsHaveRankTwoAndSparseOnesTwoOrMore) {
  error_of({.input = RaggedTensor{ids({1, 2, 3, 4}, {2, 2}), ids({0, 1, 2}, {3})}});
  error_of({.input = sparse_at({{0}}, std::vector<int64_t>{1}, {1})});
}

TEST(ServingLookupTest, StructuresMustAgree) {
  const Table table = make_table({.vocabulary_size = 16, .dim = 2});
  const EmbeddingTables tables = {{table, Variable(counting(16, 2), {.name = "t"})}};
  const FeatureConfig feature = {.table = table};
  const Nest<FeatureConfig> config = {{"a", feature}, {"b", feature}};
  const TensorLike row = ragged(IdRows{{1}});
  EXPECT_THROW(serving_embedding_lookup({{"a", row}}, {}, tables, config), ValueError);
  EXPECT_THROW(serving_embedding_lookup(Tensors::list({row, row}), {}, tables, config), TypeError);
  const Nest<std::optional<TensorLike>> one = {{"a", std::optional<TensorLike>()}};
  EXPECT_THROW(cpu_embedding_lookup({{"a", row}, {"b", row}}, one, tables, config), ValueError);
}

TEST(ServingLookupTest, AMissingTableIsNamed) {
  const Table table = make_table({.vocabulary_size = 16, .dim = 2, .name = "lost"});
  const Nest<FeatureConfig> config = {{"a", FeatureConfig{.table = table}}};
  const std::string text = message_of<ValueError>(
      [&] { serving_embedding_lookup({{"a", ids({1}, {1})}}, {}, EmbeddingTables{}, config); });
  EXPECT_THAT(text, HasSubstr("'a'"));
  EXPECT_THAT(text, HasSubstr("lost"));
}

TEST(ServingLookupTest, TablesOfALayerCanServe) {
  const Standard f;
  const auto layer = f.layer("sgd", Standard::ragged_batch(0, 2));
  const Tensors found = serving_embedding_lookup(Standard::ragged_batch(0, 2), {},
                                                 layer->embedding_tables(), f.features());
  expect_rows(found["friends"].tensor(), {{6, 7}, {2, 3}});
}

TEST(TPUEmbeddingForServingTest, TablesAndSlotsAreCreatedOnDemand) {
  const Standard f;
  TPUEmbeddingForServing embedding(f.features(), Adam{});
  EXPECT_FALSE(embedding.built());
  EXPECT_THROW(embedding.slots(f.video), RuntimeError);
  const EmbeddingTables tables = embedding.embedding_tables();
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0].first, f.video);
  EXPECT_TRUE(tables[0].second.trainable());
  EXPECT_EQ(embedding.slots(f.user).size(), 2U);
  EXPECT_EQ(embedding.slots(f.user).at("momenta").name(), "user/momenta");
  EXPECT_THROW(embedding.slots(make_table(*f.user)), ValueError);
  embedding.build();
  EXPECT_EQ(embedding.embedding_tables()[0].second.id(), tables[0].second.id());
}

TEST(TPUEmbeddingForServingTest, WithoutOptimizerThereAreNoSlots) {
  const Standard f;
  TPUEmbeddingForServing embedding(f.features());
  embedding.build();
  EXPECT_TRUE(embedding.slots(f.video).empty());
  EXPECT_EQ(embedding.tracked()->state_entries().size(), 2U);
}

TEST(TPUEmbeddingForServingTest, NamesAndOptimizersAreWrittenIntoTheTables) {
  const Table table = make_table({.vocabulary_size = 4, .dim = 2});
  const TPUEmbeddingForServing embedding(FeatureConfig{.table = table}, Adagrad{});
  EXPECT_EQ(table->name, "table_0");
  EXPECT_TRUE(table->optimizer);
}

TEST(TPUEmbeddingForServingTest, AnIneffectiveSequenceLengthIsReportedOnce) {
  const FeatureConfig feature = {.table = make_table({.vocabulary_size = 4, .dim = 2}),
                                 .max_sequence_length = 3,
                                 .output_shape = {{1}}};
  TPUEmbeddingForServing embedding({{"f", feature}});
  const Tensors input = {{"f", ragged(IdRows{{1, 2}})}};
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(embedding(input)["f"].tensor().shape(), Shape({1, 2}));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "TPUEmbedding: feature 'f': max_sequence_length 3 has no effect together with "
            "output_shape\n");
}

TEST(TPUEmbeddingForServingTest, TrainsOnTheHost) {
  const Standard f;
  TPUEmbeddingForServing embedding(f.features());
  std::vector<Variable> variables;
  for (const auto& [table, variable] : embedding.embedding_tables()) variables.push_back(variable);
  variables[0].assign(counting(8, 4));
  variables[1].assign(counting(16, 2));
  const optimizers::SGD sgd({.learning_rate = 0.1});
  std::vector<Gradient> gradients;
  {
    GradientTape tape;
    const Tensor loss = fixture::squares_loss(embedding(Standard::ragged_batch()), 4);
    EXPECT_EQ(loss.item<float>(), 335);
    gradients = tape.gradient(loss, variables);
  }
  sgd->apply_gradients(gradients, variables);
  const std::vector<float> video = variables[0].read().to_vector<float>();
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(video[i], -0.8 + 0.5 * i, 1e-5);
  EXPECT_EQ(video[8], 8);
}

}  // namespace keel::tpu::tpu_embedding_for_serving_test
