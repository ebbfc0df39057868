// Tests layers/embedding/engine_backend.cc, v0_backend.cc, variable_backend.cc,
// tables/internal/bags.cc, host_lookup.cc, host_tables.cc and feature_format.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>

#include "tests/support/embedding_fixture.h"
#include "tests/support/errors.h"

namespace keel::spec_rows_lookup_test {

using distribute::CPUStrategy;
using distribute::Strategy;
using distribute::TPUStrategy;
using fixture::counting;
using fixture::expect_rows;
using fixture::expect_tensor;
using fixture::FloatRows;
using fixture::IdRows;
using fixture::ids;
using fixture::look_up_on_engine;
using fixture::look_up_on_host;
using fixture::matrix;
using fixture::OneFeature;
using fixture::ragged;
using fixture::sparse;
using fixture::sparse_at;
using fixture::squares_loss;
using fixture::Standard;
using testing::HasSubstr;
using testing_support::message_of;
using Expected = std::vector<std::vector<double>>;

const Expected kWatchedRows = {{0, 1, 2, 3}, {4, 6, 8, 10}, {4, 6, 8, 10}, {4, 5, 6, 7}};
const Expected kFavoritedRows = {{4, 6, 8, 10}, {4, 5, 6, 7}, {0, 1, 2, 3}, {4, 6, 8, 10}};
const Expected kFriendsRows = {{6, 7}, {2, 3}, {6, 7}, {2, 3}};

void expect_both(const OneFeature& one, const Expected& expected) {
  expect_rows(look_up_on_host(one), expected);
  expect_rows(look_up_on_engine(one), expected);
}
void expect_both(const OneFeature& one, const Shape& shape, const std::vector<double>& expected) {
  expect_tensor(look_up_on_host(one), shape, expected);
  expect_tensor(look_up_on_engine(one), shape, expected);
}

template <class Body>
void in_both_modes(Body&& body) {
  {
    CPUStrategy strategy;
    const auto scope = strategy.scope();
    body(strategy);
  }
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  body(strategy);
}

// Looks up the standard fixture; every replica has the same batch. Returns the last replica's
// result.
Tensors standard_lookup(Strategy& strategy, const Tensors& batch,
                        const TPUEmbeddingCallOptions& options = {}, int64_t length = 0) {
  const auto layer = Standard().layer("sgd", batch, length, length);
  const auto out = strategy.run([&] { return layer(batch, options); });
  return out[strategy.num_local_replicas() - 1];
}

void expect_standard(const Tensors& out) {
  expect_rows(out["watched"].tensor(), kWatchedRows);
  expect_rows(out["favorited"].tensor(), kFavoritedRows);
  expect_rows(out["friends"].tensor(), kFriendsRows);
}

TEST(SpecRowsB, B01_SumAndMeanOverSparseAndRaggedRows) {
  for (const Tensors& batch : {Standard::sparse_batch(), Standard::ragged_batch()}) {
    in_both_modes([&](Strategy& strategy) { expect_standard(standard_lookup(strategy, batch)); });
  }
}

TEST(SpecRowsB, B02_LossOfTheFirstTwoRowsOfTheFixture) {
  for (const Tensors& batch : {Standard::sparse_batch(0, 2), Standard::ragged_batch(0, 2)}) {
    in_both_modes([&](Strategy& strategy) {
      EXPECT_EQ(squares_loss(standard_lookup(strategy, batch), 2).item<float>(), 335);
    });
  }
}

TEST(SpecRowsB, B03_DenseIdsAreAPlainGather) {
  expect_both({.table_values = counting(8, 4),
               .input = ids({0, 0, 1, 0, 1, 1}, {6}),
               .table = {.combiner = "sum"}},
              {{0, 1, 2, 3}, {0, 1, 2, 3}, {4, 5, 6, 7}, {0, 1, 2, 3}, {4, 5, 6, 7}, {4, 5, 6, 7}});
}

// Sparse rows with weights, the empty row 2 and a repeated id in row 1.
void expect_sparse_pooling(const char* combiner, const Expected& unweighted,
                           const Expected& weighted) {
  const IdRows indices = {{0, 0}, {0, 1}, {1, 0}, {1, 2}, {3, 0}};
  OneFeature one = {
      .table_values = counting(16, 2),
      .input = sparse_at(indices, std::vector<int64_t>{2, 5, 1, 1, 7}, {4, 3}),
      .table = {.combiner = combiner},
  };
  expect_both(one, unweighted);
  one.weights = sparse_at(indices, std::vector<float>{0.5, 2.0, 1.0, 3.0, 0.25}, {4, 3});
  expect_both(one, weighted);
}

TEST(SpecRowsB, B04_SparseSumWithWeightsAnEmptyRowAndARepeatedId) {
  expect_sparse_pooling("sum", {{14, 16}, {4, 6}, {0, 0}, {14, 15}},
                        {{22, 24.5}, {8, 12}, {0, 0}, {3.5, 3.75}});
}

TEST(SpecRowsB, B05_SparseMeanWithWeightsAnEmptyRowAndARepeatedId) {
  expect_sparse_pooling("mean", {{7, 8}, {2, 3}, {0, 0}, {14, 15}},
                        {{8.8, 9.8}, {2, 3}, {0, 0}, {14, 15}});
}

TEST(SpecRowsB, B06_SparseSqrtnWithWeightsAnEmptyRowAndARepeatedId) {
  expect_sparse_pooling("sqrtn",
                        {{9.8994949, 11.3137085}, {2.8284271, 4.2426407}, {0, 0}, {14, 15}},
                        {{10.6715675, 11.8842456}, {2.5298221, 3.7947332}, {0, 0}, {14, 15}});
}

void expect_ragged_pooling(const char* combiner, const Expected& unweighted,
                           const Expected& weighted) {
  OneFeature one = {.table_values = counting(16, 2),
                    .input = ragged(IdRows{{2, 5}, {}, {1, 1, 4}}),
                    .table = {.combiner = combiner}};
  expect_both(one, unweighted);
  one.weights = ragged(FloatRows{{0.5, 2.0}, {}, {1.0, 3.0, 0.5}});
  expect_both(one, weighted);
}

TEST(SpecRowsB, B07_RaggedSumIsZeroForTheEmptyRow) {
  expect_ragged_pooling("sum", {{14, 16}, {0, 0}, {12, 15}}, {{22, 24.5}, {0, 0}, {12, 16.5}});
}

TEST(SpecRowsB, B08_RaggedMeanIsZeroForTheEmptyRow) {
  expect_ragged_pooling("mean", {{7, 8}, {0, 0}, {4, 5}},
                        {{8.8, 9.8}, {0, 0}, {2.6666667, 3.6666667}});
}

TEST(SpecRowsB, B09_RaggedSqrtnIsZeroForTheEmptyRow) {
  expect_ragged_pooling("sqrtn", {{9.8994949, 11.3137085}, {0, 0}, {6.9282032, 8.660254}},
                        {{10.6715675, 11.8842456}, {0, 0}, {3.7481703, 5.1537341}});
}

void expect_pruned(const char* combiner, const Expected& expected) {
  const IdRows indices = {{0, 0}, {0, 1}, {0, 2}, {1, 0}};
  expect_rows(look_up_on_host(
                  {.table_values = counting(16, 2),
                   .input = sparse_at(indices, std::vector<int64_t>{3, -1, 5, 4}, {2, 3}),
                   .weights = sparse_at(indices, std::vector<float>{2.0, 1.0, -1.0, 0.0}, {2, 3}),
                   .table = {.combiner = combiner}}),
              expected);
}

TEST(SpecRowsB, B10_TheHostPrunesNegativeIdsButNoWeightsOfSums) {
  expect_pruned("sum", {{2, 3}, {0, 0}});
}

TEST(SpecRowsB, B11_TheHostPrunesNegativeIdsAndWeightsOfMeans) {
  expect_pruned("mean", {{6, 7}, {0, 0}});
}

TEST(SpecRowsB, B12_TheHostPrunesNegativeIdsAndWeightsOfSqrtn) {
  expect_pruned("sqrtn", {{6, 7}, {0, 0}});
}

TEST(SpecRowsB, B13_TheEngineKeepsSignedWeights) {
  const auto with = [](const char* combiner, bool as_sparse) {
    const IdRows rows = {{3, 5}, {4}, {1, 2}};
    const FloatRows weights = {{2, -1}, {0}, {1, -1}};
    return look_up_on_engine({.table_values = counting(16, 2),
                              .input = as_sparse ? sparse(rows, 2) : ragged(rows),
                              .weights = as_sparse ? sparse(weights, 2) : ragged(weights),
                              .table = {.combiner = combiner}});
  };
  for (const bool as_sparse : {true, false}) {
    expect_rows(with("sum", as_sparse), {{2, 3}, {0, 0}, {-2, -2}});
    expect_rows(with("mean", as_sparse), {{2, 3}, {0, 0}, {0, 0}});
    expect_rows(with("sqrtn", as_sparse),
                {{0.8944272, 1.3416408}, {0, 0}, {-1.4142136, -1.4142136}});
  }
}

const IdRows kFriends = {{3}, {0, 1, 2}, {3}, {0, 1, 2}};
const std::vector<double> kCutToTwo = {6, 7, 0, 0, 0, 1, 2, 3, 6, 7, 0, 0, 0, 1, 2, 3};

TEST(SpecRowsB, B14_SparseSequencesAreCutAndPadded) {
  expect_both({.table_values = counting(16, 2),
               .input = sparse(kFriends, 3),
               .feature = {.max_sequence_length = 2}},
              {4, 2, 2}, kCutToTwo);
}

TEST(SpecRowsB, B15_RaggedSequencesEqualSparseOnes) {
  expect_both({.table_values = counting(16, 2),
               .input = ragged(kFriends),
               .feature = {.max_sequence_length = 2}},
              {4, 2, 2}, kCutToTwo);
}

TEST(SpecRowsB, B16_TheColumnOfASparseIdIsItsStep) {
  expect_both({.table_values = counting(16, 2),
               .input = sparse_at({{0, 0}, {0, 2}, {1, 1}}, std::vector<int64_t>{5, 6, 7}, {2, 3}),
               .feature = {.max_sequence_length = 3}},
              {2, 3, 2}, {10, 11, 0, 0, 12, 13, 0, 0, 14, 15, 0, 0});
}

TEST(SpecRowsB, B17_ShapesOfSequences) {
  for (const Tensors& batch : {Standard::sparse_batch(0, 2), Standard::ragged_batch(0, 2)}) {
    in_both_modes([&](Strategy& strategy) {
      const Tensors out = standard_lookup(strategy, batch, {}, 3);
      EXPECT_EQ(out["watched"].tensor().shape(), Shape({2, 3, 4}));
      EXPECT_EQ(out["favorited"].tensor().shape(), Shape({2, 3, 4}));
      EXPECT_EQ(out["friends"].tensor().shape(), Shape({2, 3, 2}));
    });
  }
}

TEST(SpecRowsB, B18_RaggedRowsAcceptAnOutputShapeOfTheirNumber) {
  expect_both({.table_values = counting(16, 2),
               .input = ragged(kFriends),
               .feature = {.output_shape = Shape({2, 2})}},
              {2, 2, 2}, {6, 7, 2, 3, 6, 7, 2, 3});
}

TEST(SpecRowsB, B19_AnOutputShapeOfAMultipleOfTheRowsHoldsSteps) {
  expect_both({.table_values = counting(16, 2),
               .input = ragged(kFriends),
               .feature = {.output_shape = Shape({2, 4})}},
              {2, 4, 2}, {6, 7, 0, 0, 0, 1, 2, 3, 6, 7, 0, 0, 0, 1, 2, 3});
}

// Returns the message of the ValueError that a call throws.
template <class Call>
std::string value_error(Call&& call) {
  return message_of<ValueError>([&] { call(); });
}

TEST(SpecRowsB, B20_AnOutputShapeThatDoesNotFitTheRowsIsAnError) {
  const OneFeature one = {.table_values = counting(16, 2),
                          .input = ragged(kFriends),
                          .feature = {.output_shape = Shape({3})}};
  for (const std::string& text :
       {value_error([&] { look_up_on_host(one); }), value_error([&] { look_up_on_engine(one); })}) {
    EXPECT_THAT(text, HasSubstr("output_shape (3,)"));
    EXPECT_THAT(text, HasSubstr("4 rows"));
  }
}

TEST(SpecRowsB, B21_SparseIdsOfRankThreeLoseTheirLastAxis) {
  expect_both(
      {.table_values = counting(16, 2),
       .input = sparse_at({{0, 0, 0}, {0, 0, 1}, {1, 0, 0}, {1, 1, 0}, {1, 1, 1}, {1, 1, 2}},
                          std::vector<int64_t>{0, 1, 2, 3, 3, 1}, {2, 2, 3})},
      {2, 2, 2}, {1, 2, 0, 0, 4, 5, 4.6666667, 5.6666667});
}

TEST(SpecRowsB, B22_ADenseColumnKeepsItsAxisOnTheHostOnly) {
  const OneFeature one = {.table_values = counting(16, 2), .input = ids({3, 1}, {2, 1})};
  expect_rows(look_up_on_engine(one), {{6, 7}, {2, 3}});
  expect_tensor(look_up_on_host(one), {2, 1, 2}, {6, 7, 2, 3});
}

TEST(SpecRowsB, B23_TheHostRejectsInvalidWeightsAndInputsWithThePath) {
  const Tensor table = counting(16, 2);
  const IdRows rows = {{0}, {1}};
  const FloatRows ones = {{1}, {1}};
  const FeatureConfig sequence = {.max_sequence_length = 2};
  const OneFeature bad[] = {
      {.table_values = table, .input = ids({0, 1}, {2}), .weights = matrix(ones).reshaped({2})},
      {.table_values = table, .input = sparse(rows, 1), .weights = matrix(ones)},
      {.table_values = table, .input = sparse(rows, 1), .weights = ragged(ones)},
      {.table_values = table,
       .input = sparse(rows, 1),
       .weights = sparse(ones, 1),
       .feature = sequence},
      {.table_values = table, .input = ids({0, 1}, {2}), .feature = sequence},
      {.table_values = table, .input = Tensor::from<std::string>({"a", "b"}, {2})},
  };
  for (const OneFeature& one : bad) {
    const std::string text = value_error([&] { look_up_on_host(one); });
    EXPECT_THAT(text, HasSubstr("'f'"));
  }
}

TEST(SpecRowsB, B24_AMissingLastRowGivesZeros) {
  expect_both({.table_values = counting(8, 4),
               .input = ragged(IdRows{{0}, {0, 1}, {0, 1}, {}}),
               .table = {.combiner = "sum"}},
              {{0, 1, 2, 3}, {4, 6, 8, 10}, {4, 6, 8, 10}, {0, 0, 0, 0}});
}

TEST(SpecRowsB, B25_ConstantWeightsAndAMissingEntryThatMeansOnes) {
  const auto halves = [](const TensorLike& like) -> TensorLike {
    const Tensor half = Tensor::full<float>({like.values().size()}, 0.5F);
    if (like.layout() == Layout::kRagged) return RaggedTensor{half, like.ragged().row_splits};
    SparseTensor out = like.sparse();
    out.values = half;
    return out;
  };
  for (const Tensors& batch : {Standard::sparse_batch(), Standard::ragged_batch()}) {
    in_both_modes([&](Strategy& strategy) {
      const Nest<std::optional<TensorLike>> weights = {
          {"watched", std::optional(halves(batch["watched"].leaf()))},
          {"favorited", std::optional<TensorLike>()},
          {"friends", std::optional(halves(batch["friends"].leaf()))}};
      const Tensors out = standard_lookup(strategy, batch, {.weights = weights});
      expect_rows(out["watched"].tensor(),
                  {{0, 0.5, 1, 1.5}, {2, 3, 4, 5}, {2, 3, 4, 5}, {2, 2.5, 3, 3.5}});
      expect_rows(out["favorited"].tensor(), kFavoritedRows);
      expect_rows(out["friends"].tensor(), kFriendsRows);
    });
  }
}

TEST(SpecRowsB, B26_QuantizationClipsAndRoundsHalvesUp) {
  expect_rows(look_up_on_engine({.table_values = matrix({{-1.2F, 0.1F, 0.26F, 0.9F}}),
                                 .input = ids({0}, {1}),
                                 .table = {.quantization_config = QuantizationConfig(5, -1, 1)}}),
              {{-1, 0, 0.5, 1}});
}

TEST(SpecRowsB, B27_QuantizationIsBeforeTheCombinerAndLeavesTheTableAlone) {
  const Tensor values = matrix({{0.3F, -0.3F}, {0.24F, 2.0F}});
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Table table = make_table(
      {.vocabulary_size = 2, .dim = 2, .quantization_config = QuantizationConfig(5, -1, 1)});
  const layers::TPUEmbedding layer(
      {.feature_config = FeatureConfig{.table = table}, .optimizer = "sgd"});
  const Tensors sample = ragged(IdRows{{0, 1}});
  layer->build(specs_of(sample));
  layer->update_embedding_table(table, values);
  const auto out = strategy.run([&] { return layer(sample).tensor(); });
  expect_rows(out[1], {{0.25, 0.25}});
  EXPECT_EQ(layer->embedding_tables()[0].second.to_vector<float>(), values.to_vector<float>());
  const Nest<FeatureConfig> serving = FeatureConfig{.table = table};
  expect_rows(layer(sample, {.serving_config = serving}).tensor(), {{0.27, 0.85}});
}

TEST(SpecRowsB, B28_WithoutValidationTrailingRowsAreZeroAndNegativeIdsAreErrors) {
  OneFeature one = {.table_values = counting(16, 2),
                    .input = sparse_at({{0, 0}, {2, 0}}, std::vector<int64_t>{1, 2}, {4, 1}),
                    .feature = {.validate_weights_and_indices = false}};
  expect_rows(look_up_on_host(one), {{2, 3}, {0, 0}, {4, 5}, {0, 0}});
  one.input = sparse_at({{0, 0}, {2, 0}}, std::vector<int64_t>{1, -1}, {4, 1});
  EXPECT_THROW(look_up_on_host(one), ValueError);
}

TEST(SpecRowsB, B29_AnIdBeyondTheVocabularyIsAnErrorInEveryMode) {
  for (const TensorLike& input :
       {TensorLike(ids({0, 16}, {2})), ragged(IdRows{{0}, {16}}), sparse(IdRows{{0}, {16}}, 1)}) {
    const OneFeature one = {.table_values = counting(16, 2), .input = input};
    for (const std::string& text : {value_error([&] { look_up_on_host(one); }),
                                    value_error([&] { look_up_on_engine(one); })}) {
      EXPECT_THAT(text, HasSubstr("16"));
      EXPECT_THAT(text, HasSubstr("'f'"));
    }
  }
}

}  // namespace keel::spec_rows_lookup_test
