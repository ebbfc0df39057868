#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/mid_level/embedding_base.h>
#include <keel/optimizers/sgd.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>

#include "tests/support/embedding_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace keel::tpu::tpu_embedding_v0_test {

using distribute::TPUStrategy;
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
using testing_support::TemporaryFolder;
using Expected = std::vector<std::vector<double>>;

struct Lookup {
  TensorLike input;
  std::optional<TensorLike> weights = {};
  std::string combiner = "mean";
  FeatureConfig feature = {};
};

// Looks up ids in table user (16 x 2; 0, 1, 2, ... row by row) in each of two replicas. Returns the
// last replica's activations.
Tensor look_up(const Lookup& lookup) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  FeatureConfig feature = lookup.feature;
  feature.table = make_table({.vocabulary_size = 16, .dim = 2, .combiner = lookup.combiner});
  TPUEmbeddingV0 embedding({{"f", feature}}, SGD{});
  embedding.embedding_tables()[0].second.assign(counting(16, 2));
  FeatureWeights weights;
  if (lookup.weights) weights = Nest<std::optional<TensorLike>>{{"f", lookup.weights}};
  const Tensors input = {{"f", lookup.input}};
  return strategy.run([&] { return embedding(input, weights)["f"].tensor(); })[1];
}

void expect_error(const Lookup& lookup) {
  const std::string text = message_of<ValueError>([&] { look_up(lookup); });
  EXPECT_THAT(text, HasSubstr("'f'"));
}

TEST(SpecRowsG, G01_RowsEqualThoseOfTheEngine) {
  const IdRows rows = {{2, 5}, {}, {1, 1, 4}};
  const FloatRows weights = {{0.5, 2.0}, {}, {1.0, 3.0, 0.5}};
  const std::map<std::string, std::pair<Expected, Expected>> cases = {
      {"sum", {{{14, 16}, {0, 0}, {12, 15}}, {{22, 24.5}, {0, 0}, {12, 16.5}}}},
      {"mean", {{{7, 8}, {0, 0}, {4, 5}}, {{8.8, 9.8}, {0, 0}, {2.6666667, 3.6666667}}}},
      {"sqrtn",
       {{{9.8994949, 11.3137085}, {0, 0}, {6.9282032, 8.660254}},
        {{10.6715675, 11.8842456}, {0, 0}, {3.7481703, 5.1537341}}}}};
  for (const auto& [combiner, expected] : cases) {
    expect_rows(look_up({.input = ragged(rows), .combiner = combiner}), expected.first);
    expect_rows(look_up({.input = sparse(rows, 3), .combiner = combiner}), expected.first);
    expect_rows(look_up({.input = ragged(rows), .weights = ragged(weights), .combiner = combiner}),
                expected.second);
    expect_rows(
        look_up({.input = sparse(rows, 3), .weights = sparse(weights, 3), .combiner = combiner}),
        expected.second);
  }
}

TEST(SpecRowsG, G02_SparseSequencesAreCutAndPadded) {
  const TensorLike friends = Standard::sparse_batch()["friends"].leaf();
  expect_tensor(look_up({.input = friends, .feature = {.max_sequence_length = 2}}), {4, 2, 2},
                {6, 7, 0, 0, 0, 1, 2, 3, 6, 7, 0, 0, 0, 1, 2, 3});
  const std::vector<double> one = {6, 7, 0, 0, 0, 0, 0, 0, 0, 0};
  const std::vector<double> three = {0, 1, 2, 3, 4, 5, 0, 0, 0, 0};
  std::vector<double> expected;
  for (const auto* row : {&one, &three, &one, &three}) {
    expected.insert(expected.end(), row->begin(), row->end());
  }
  expect_tensor(look_up({.input = friends, .feature = {.max_sequence_length = 5}}), {4, 5, 2},
                expected);
}

TEST(SpecRowsG, G03_ThePaddingOfRaggedSequencesIsZero) {
  const TensorLike friends = Standard::ragged_batch(0, 2)["friends"].leaf();
  expect_tensor(look_up({.input = friends, .feature = {.max_sequence_length = 2}}), {2, 2, 2},
                {6, 7, 0, 0, 0, 1, 2, 3});
}

TEST(SpecRowsG, G04_WeightsOfAnySignAreUsed) {
  const IdRows rows = {{3, 5}, {4}, {1, 2}};
  const FloatRows weights = {{2, -1}, {0}, {1, -1}};
  const std::map<std::string, Expected> cases = {
      {"sum", {{2, 3}, {0, 0}, {-2, -2}}},
      {"mean", {{2, 3}, {0, 0}, {0, 0}}},
      {"sqrtn", {{0.8944272, 1.3416408}, {0, 0}, {-1.4142136, -1.4142136}}}};
  for (const auto& [combiner, expected] : cases) {
    expect_rows(look_up({.input = ragged(rows), .weights = ragged(weights), .combiner = combiner}),
                expected);
    expect_rows(
        look_up({.input = sparse(rows, 2), .weights = sparse(weights, 2), .combiner = combiner}),
        expected);
  }
}

TEST(SpecRowsG, G05_TheTablesAreOrdinaryVariables) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const Table user = make_table({.vocabulary_size = 16, .dim = 2});
  TPUEmbeddingV0 embedding(FeatureConfig{.table = user});
  const std::vector<Variable> variables = {embedding.embedding_tables()[0].second};
  EXPECT_TRUE(variables[0].trainable());
  variables[0].assign(counting(16, 2));
  const optimizers::SGD sgd({.learning_rate = 0.1});
  strategy.run([&] {
    std::vector<Gradient> gradients;
    {
      GradientTape tape;
      gradients =
          tape.gradient(ops::sum(embedding(Tensors(ragged(IdRows{{0, 1}}))).tensor()), variables);
    }
    sgd->apply_gradients(gradients, variables);
  });
  std::vector<float> expected = counting(16, 2).to_vector<float>();
  for (int i = 0; i < 4; ++i) expected[i] -= 0.05F;
  EXPECT_EQ(variables[0].read().to_vector<float>(), expected);
}

std::vector<std::pair<std::string, Shape>> entries_of(const EmbeddingBase& embedding) {
  std::vector<std::pair<std::string, Shape>> out;
  for (const StateEntry& entry : embedding.tracked()->state_entries()) {
    out.emplace_back(entry.name, entry.spec.shape);
  }
  return out;
}

TEST(SpecRowsG, G06_V0CheckpointsRestoreInV0AndOnTheHost) {
  const auto fill = [](VariableEmbedding& embedding, float value) {
    for (const auto& [table, variable] : embedding.embedding_tables()) {
      variable.assign(Tensor::full<float>(variable.shape(), value));
      for (const auto& [name, slot] : embedding.slots(table)) {
        slot.assign(Tensor::full<float>(slot.shape(), value));
      }
    }
  };
  const auto expect_ones = [](VariableEmbedding& embedding) {
    for (const StateEntry& entry : embedding.tracked()->state_entries()) {
      for (const float x : entry.get().to_vector<float>()) ASSERT_EQ(x, 1) << entry.name;
    }
  };
  const TemporaryFolder folder;
  const Standard f;
  std::vector<std::pair<std::string, Shape>> there;
  {
    TPUStrategy strategy({.num_cores = 2});
    const auto scope = strategy.scope();
    TPUEmbeddingV0 ones(f.features(), Adagrad{});
    fill(ones, 1);
    there = entries_of(ones);
    Checkpoint({.embeddings = {{"e", ones}}}).write(folder / "c", 1);
    TPUEmbeddingV0 twos(f.features(), Adagrad{});
    fill(twos, 2);
    Checkpoint({.embeddings = {{"e", twos}}}).restore(folder / "c").assert_consumed();
    expect_ones(twos);
  }
  TPUEmbeddingForServing host(f.features(), Adagrad{});
  fill(host, 2);
  Checkpoint({.embeddings = {{"e", host}}}).restore(folder / "c").assert_consumed();
  expect_ones(host);
  EXPECT_EQ(entries_of(host), there);
  EXPECT_EQ(there.size(), 4U);
}

TEST(SpecRowsG, G07_WrongInputsAreErrorsOfTheirFeature) {
  const TensorLike rows = ragged(IdRows{{1}, {2, 3}});
  const TensorLike weights = ragged(FloatRows{{1}, {1, 1}});
  const FeatureConfig steps = {.max_sequence_length = 2};
  expect_error({.input = ids({1, 2}, {2}), .weights = Tensor::full<float>({2}, 1)});
  expect_error({.input = rows, .weights = sparse(FloatRows{{1}, {1, 1}}, 2)});
  expect_error({.input = rows, .weights = weights, .feature = steps});
  expect_error({.input = ids({1, 2}, {2}), .feature = steps});
  const RaggedTensor deep = {ids({1, 2, 3, 4}, {2, 2}), ids({0, 1, 2}, {3})};
  expect_error({.input = deep});
  expect_error({.input = ragged(IdRows{{1}, {2}, {3}, {4}}), .feature = {.output_shape = {{3}}}});
  expect_error({.input = Tensor::from<std::string>({"a"}, {1})});
  // Sparse sequences have rank 2.
  expect_error(
      {.input = sparse_at({{0, 0, 0}}, std::vector<int64_t>{1}, {1, 1, 1}), .feature = steps});
}

TEST(SpecRowsE, E34_EachClassIsMadeUnderItsOwnKindOfStrategy) {
  const Table table = make_table({.vocabulary_size = 4, .dim = 2});
  const Nest<FeatureConfig> features = FeatureConfig{.table = table};
  EXPECT_THROW(TPUEmbeddingV0(features, SGD{}), RuntimeError);
  EXPECT_TRUE(table->name.empty()) << "nothing is written when the strategy is refused";
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  EXPECT_THROW(TPUEmbeddingForServing(features, SGD{}), RuntimeError);
  EXPECT_NO_THROW(TPUEmbeddingV0(features, SGD{}));
}

TEST(TPUEmbeddingV0Test, DenseIdsKeepTheirShape) {
  expect_tensor(look_up({.input = ids({3, 1}, {2, 1})}), {2, 1, 2}, {6, 7, 2, 3});
}

TEST(TPUEmbeddingV0Test, RowsOfSparseIdsOfHigherRankAreTheLastAxis) {
  const TensorLike cells =
      sparse_at({{0, 0, 0}, {0, 0, 1}, {1, 0, 0}, {1, 1, 0}, {1, 1, 1}, {1, 1, 2}},
                std::vector<int64_t>{0, 1, 2, 3, 3, 1}, {2, 2, 3});
  expect_tensor(look_up({.input = cells}), {2, 2, 2}, {1, 2, 0, 0, 4, 5, 4.6666667, 5.6666667});
}

TEST(TPUEmbeddingV0Test, AnOutputShapeOnlyKeepsOtherIdsFromBeingSequences) {
  const FeatureConfig feature = {.max_sequence_length = 2, .output_shape = {{2}}};
  expect_rows(look_up({.input = sparse(IdRows{{1, 2}, {}, {3}}, 2), .feature = feature}),
              {{3, 4}, {0, 0}, {6, 7}});
  expect_tensor(look_up({.input = ids({3, 1}, {2, 1}), .feature = {.output_shape = {{2}}}}),
                {2, 1, 2}, {6, 7, 2, 3});
}

TEST(TPUEmbeddingV0Test, RaggedRowsFillTheOutputShape) {
  const TensorLike friends = Standard::ragged_batch()["friends"].leaf();
  expect_tensor(look_up({.input = friends, .feature = {.output_shape = {{2, 2}}}}), {2, 2, 2},
                {6, 7, 2, 3, 6, 7, 2, 3});
  expect_tensor(look_up({.input = friends, .feature = {.output_shape = {{2, 4}}}}), {2, 4, 2},
                {6, 7, 0, 0, 0, 1, 2, 3, 6, 7, 0, 0, 0, 1, 2, 3});
}

TEST(TPUEmbeddingV0Test, GradientsOfReplicasAddUp) {
  TPUStrategy strategy({.num_cores = 4});
  const auto scope = strategy.scope();
  const Table table = make_table({.vocabulary_size = 4, .dim = 1, .initializer = "zeros"});
  TPUEmbeddingV0 embedding(FeatureConfig{.table = table});
  const std::vector<Variable> variables = {embedding.embedding_tables()[0].second};
  const optimizers::SGD sgd({.learning_rate = 1});
  strategy.run([&] {
    const int64_t replica = current_replica_context()->replica;
    std::vector<Gradient> gradients;
    {
      GradientTape tape;
      const Tensor y = embedding(Tensors(ragged(IdRows{{0, replica}}))).tensor();
      gradients = tape.gradient(ops::sum(y), variables);
    }
    sgd->apply_gradients(gradients, variables);
  });
  expect_rows(variables[0].read(), {{-2.5}, {-0.5}, {-0.5}, {-0.5}});
}

TEST(TPUEmbeddingV0Test, SeveralObjectsMayShareAStrategy) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const Standard f;
  TPUEmbeddingV0 a(f.features(), "sgd");
  TPUEmbeddingV0 b(f.features(), "sgd");
  a.build();
  a.build();
  b.build();
  EXPECT_NE(a.embedding_tables()[0].second.id(), b.embedding_tables()[0].second.id());
  EXPECT_EQ(a.embedding_tables()[0].first, f.video);
}

TEST(TPUEmbeddingV0Test, AFactoryMayCreateSlotsOfAnyName) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const Table table = make_table({.vocabulary_size = 4, .dim = 2, .name = "t"});
  TPUEmbeddingV0 embedding(
      FeatureConfig{.table = table},
      Adagrad{.slot_variable_creation_fn = [](const TableVariable& of, const auto& names,
                                              const auto& initializers) -> SlotVariables {
        EXPECT_EQ(of.name, "t");
        EXPECT_EQ(initializers.size(), 1U);
        return {{names.at(0), Tensor::full<float>(of.shape, 7)}};
      }});
  embedding.build();
  EXPECT_EQ(embedding.slots(table).at("accumulators").read().data<float>()[0], 7);
  EXPECT_FALSE(embedding.slots(table).at("accumulators").trainable());
}

}  // namespace keel::tpu::tpu_embedding_v0_test
