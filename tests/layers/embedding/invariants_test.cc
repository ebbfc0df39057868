// Invariants of embedding tables that hold for all values.
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/sgd.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>

#include "tests/support/embedding_fixture.h"
#include "tests/support/expectations.h"
#include "tests/support/random_embedding_case.h"
#include "tests/support/temporary_folder.h"

namespace keel::invariants_test {

using distribute::CPUStrategy;
using distribute::Strategy;
using distribute::TPUStrategy;
using distribute::TPUStrategyOptions;
using fixture::FloatRows;
using fixture::IdRows;
using fixture::look_up_on_engine;
using fixture::look_up_on_host;
using fixture::OneFeature;
using fixture::ragged;
using fixture::state_of;
using layers::TPUEmbedding;
using naive::Dice;
using testing_support::expect_near;
using testing_support::TemporaryFolder;
using testing_support::Tolerance;
using Values = std::vector<float>;

constexpr Tolerance kExact = {};
constexpr Tolerance kLookups = {.absolute = 1e-6, .relative = 1e-6};
constexpr Tolerance kTraining = {.absolute = 2e-5, .relative = 2e-5};

constexpr int64_t kRows = 23, kDim = 3;

Tensor random_tensor(Dice& dice, const Shape& shape) {
  Values out;
  for (int64_t i = 0; i < shape.size(); ++i) out.push_back(static_cast<float>(dice.real(-2, 2)));
  return Tensor::from(out, shape);
}

const char* const kCombiners[] = {"mean", "sum", "sqrtn"};

// Weighted rows of a random table, looked up both on the host and on an engine.
struct Lookup {
  std::string combiner;
  IdRows ids;
  FloatRows weights;

  Values values(bool engine) const {
    Dice dice(1);
    const OneFeature one = {.table_values = random_tensor(dice, {kRows, kDim}),
                            .input = ragged(ids),
                            .weights = ragged(weights),
                            .table = {.combiner = combiner}};
    return (engine ? look_up_on_engine(one) : look_up_on_host(one)).to_vector<float>();
  }
};

TEST(EmbeddingInvariantsTest, OrderInsideASampleDoesNotMatter) {
  for (const char* combiner : kCombiners) {
    for (const bool engine : {false, true}) {
      const Lookup a = {combiner, {{3, 7, 7, 1}}, {{0.5, 2, 1, 0.25}}};
      const Lookup b = {combiner, {{7, 1, 7, 3}}, {{1, 0.25, 2, 0.5}}};
      expect_near(a.values(engine), b.values(engine), kLookups);
    }
  }
}

TEST(EmbeddingInvariantsTest, ARepeatedIdCountsTwice) {
  for (const bool engine : {false, true}) {
    for (const char* combiner : {"mean", "sum"}) {
      expect_near(Lookup{combiner, {{3, 7, 7}}, {{0.5, 2, 2}}}.values(engine),
                  Lookup{combiner, {{3, 7}}, {{0.5, 4}}}.values(engine), kLookups);
    }
    const Values terms = Lookup{"sqrtn", {{3, 7, 7}}, {{0.5, 2, 2}}}.values(engine);
    Values sum = Lookup{"sum", {{3, 7}}, {{0.5, 4}}}.values(engine);
    for (float& x : sum) x /= std::sqrt(0.25F + 4 + 4);
    expect_near(terms, sum, kLookups);
  }
}

TEST(EmbeddingInvariantsTest, SqrtnOfEqualIdsScalesByTheRoot) {
  Dice dice(1);
  const Values table = random_tensor(dice, {kRows, kDim}).to_vector<float>();
  const Values row(table.begin() + 5 * kDim, table.begin() + 6 * kDim);
  for (const bool engine : {false, true}) {
    expect_near(Lookup{"mean", {{5}}, {{0.75}}}.values(engine), row, kLookups);
    Values twice = row;
    for (float& x : twice) x *= 2;
    expect_near(Lookup{"sqrtn", {{5, 5, 5, 5}}, {{1, 1, 1, 1}}}.values(engine), twice, kLookups);
  }
}

TEST(EmbeddingInvariantsTest, ScalingAllWeightsScalesSumsOnly) {
  for (const char* combiner : kCombiners) {
    for (const bool engine : {false, true}) {
      Values expected = Lookup{combiner, {{3, 7, 1}}, {{0.5, 2, 1}}}.values(engine);
      if (std::string(combiner) == "sum") {
        for (float& x : expected) x *= 3;
      }
      expect_near(Lookup{combiner, {{3, 7, 1}}, {{1.5, 6, 3}}}.values(engine), expected, kLookups);
    }
  }
}

TEST(EmbeddingInvariantsTest, RowGradientsAreFiniteDifferences) {
  const Tensors ids = ragged(IdRows{{3, 7, 7, 1}, {}, {22, 3}});
  const Nest<std::optional<TensorLike>> weights =
      std::optional<TensorLike>(ragged(FloatRows{{0.5, 2, 1, 0.25}, {}, {1, 3}}));
  for (const char* combiner : kCombiners) {
    Dice dice(1);
    const Tensor coefficients = random_tensor(dice, {3, kDim});
    const Values start = random_tensor(dice, {kRows, kDim}).to_vector<float>();
    const Table table = make_table({.vocabulary_size = kRows, .dim = kDim, .combiner = combiner});
    const TPUEmbedding layer({.feature_config = FeatureConfig{.table = table}});
    layer->build(specs_of(ids));
    const auto loss_at = [&](const Values& values) {
      layer->update_embedding_table(table, Tensor::from(values, {kRows, kDim}));
      return ops::sum(layer(ids, {.weights = weights}).tensor() * coefficients);
    };
    GradientTape tape;
    const Tensor loss = loss_at(start);
    const Values gradient =
        tape.gradient(loss, layer->trainable_variables())[0].dense().to_vector<float>();
    for (size_t i = 0; i < start.size(); ++i) {
      // The loss is linear in the table, so a large step has no truncation error.
      Values moved = start;
      moved[i] += 8;
      EXPECT_NEAR(gradient[i], (loss_at(moved) - loss).item<float>() / 8, 1e-5) << i;
    }
  }
}

// Batches of 12 rows, which the replicas of a strategy divide in order.
struct Problem {
  std::string combiner = "sqrtn";
  bool all_rows = false;  // every batch touches every row of the table
  bool repeating = true;  // a row of the table may occur twice in a batch
  bool disjoint = false;  // consecutive steps touch different rows
  int steps = 3;
  bool pipelined = false;

  static constexpr int64_t kBatch = 12;
  IdRows ids(int step) const;
};

IdRows Problem::ids(int step) const {
  Dice dice(100 + step);
  IdRows out(kBatch);
  std::vector<int64_t> deck(kRows);
  std::iota(deck.begin(), deck.end(), 0);
  for (size_t i = deck.size() - 1; i > 0; --i) std::swap(deck[i], deck[dice.between(0, i)]);
  if (all_rows) {
    for (size_t i = 0; i < deck.size(); ++i) out[i % kBatch].push_back(deck[i]);
    return out;
  }
  for (size_t row = 0; row < out.size(); ++row) {
    if (row % 5 == 3) continue;
    if (disjoint) {
      out[row] = {dice.between(0, 10) * 2 + step % 2};
    } else if (repeating) {
      out[row] = {dice.between(0, 3), dice.between(0, kRows - 1)};
    } else {
      out[row] = {deck[row]};
    }
  }
  return out;
}

struct Trained {
  std::map<std::string, Values> state;  // the layer's state
  std::vector<Values> activations;      // by step, replica 0 only
};

void expect_same_training(const Trained& a, const Trained& b, const Tolerance& tolerance) {
  ASSERT_EQ(a.state.size(), b.state.size());
  for (const auto& [name, values] : a.state) {
    SCOPED_TRACE(name);
    expect_near(values, b.state.at(name), tolerance);
  }
}

Trained train(const TPUStrategyOptions& options, const EmbeddingOptimizer& optimizer,
              const Problem& problem = {}) {
  TPUStrategy strategy(options);
  const auto scope = strategy.scope();
  const Table table = make_table(
      {.vocabulary_size = kRows, .dim = kDim, .combiner = problem.combiner, .name = "t"});
  const TPUEmbedding layer({.feature_config = FeatureConfig{.table = table},
                            .optimizer = optimizer,
                            .pipeline_execution_with_tensor_core = problem.pipelined});
  const int64_t share = Problem::kBatch / strategy.num_replicas_in_sync();
  layer->build(Specs(slice_rows(ragged(problem.ids(0)), 0, share).spec()));
  Dice dice(7);
  layer->update_embedding_table(table, random_tensor(dice, {kRows, kDim}));
  Trained out;
  for (int step = 0; step < problem.steps; ++step) {
    const Tensor coefficients = random_tensor(dice, {Problem::kBatch, kDim});
    strategy.run([&] {
      const int64_t first = current_replica_context()->replica * share;
      GradientTape tape;
      const Tensor y =
          layer(Tensors(slice_rows(ragged(problem.ids(step)), first, first + share))).tensor();
      if (first == 0) out.activations.push_back(y.to_vector<float>());
      const TensorLike local = slice_rows(TensorLike(coefficients), first, first + share);
      tape.gradient(ops::sum(y * local.tensor()), layer->trainable_variables());
    });
  }
  for (const StateEntry& entry : layer->state_entries()) {
    out.state[entry.name] = entry.get().to_vector<float>();
  }
  return out;
}

std::vector<EmbeddingOptimizer> accumulating_optimizers() {
  return {tpu::SGD{.learning_rate = 0.1},
          tpu::Adagrad{.learning_rate = 0.1},
          tpu::AdagradMomentum{.learning_rate = 0.1, .momentum = 0.5, .epsilon = 0.01},
          tpu::Adam{.learning_rate = 0.1, .epsilon = 0.01},
          tpu::Adam{.learning_rate = 0.1, .epsilon = 0.01, .lazy_adam = false},
          tpu::FTRL{.learning_rate = 0.1, .l1_regularization_strength = 0.01}};
}

TEST(EmbeddingInvariantsTest, TrainingDoesNotDependOnReplicasOrTablePartition) {
  const TPUStrategyOptions splits[] = {{.num_hosts = 1, .num_cores = 2},
                                       {.num_hosts = 2, .num_cores = 1},
                                       {.num_hosts = 3, .num_cores = 2},
                                       {.num_hosts = 1, .num_cores = 12}};
  for (const EmbeddingOptimizer& optimizer : accumulating_optimizers()) {
    const Trained one = train({.num_hosts = 1, .num_cores = 1}, optimizer);
    for (const TPUStrategyOptions& split : splits)
      expect_same_training(train(split, optimizer), one, kTraining);
  }
}

TEST(EmbeddingInvariantsTest, MoreHostsThanRowsChangeNothing) {
  const auto activations = [](int hosts) {
    TPUStrategy strategy({.num_hosts = hosts, .num_cores = 1});
    const auto scope = strategy.scope();
    const Table table = make_table({.vocabulary_size = 2, .dim = 2, .initializer = "ones"});
    const TPUEmbedding layer({.feature_config = FeatureConfig{.table = table},
                              .optimizer = tpu::SGD{.learning_rate = 1.0 / hosts}});
    const Tensors ids = ragged(IdRows{{0, 1}, {1}});
    layer->build(specs_of(ids));
    strategy.run([&] {
      GradientTape tape;
      tape.gradient(ops::sum(layer(ids).tensor()), layer->trainable_variables());
    });
    return layer->embedding_tables()[0].second.to_vector<float>();
  };
  expect_near(activations(7), activations(1), kLookups);
}

// Trains with a Keras optimizer, so that both modes have the same update rule. If `then` is given,
// saves a checkpoint half-way in one mode and restores it in the other.
template <class Make>
Values train_across(Strategy& first, Strategy* then, const Make& make_optimizer,
                    const std::string& path) {
  const auto run = [&](Strategy& strategy, int begin, int end, bool restore) {
    const auto scope = strategy.scope();
    const OptimizerHandle optimizer = make_optimizer();
    const Table table = make_table({.vocabulary_size = kRows, .dim = kDim, .name = "t"});
    const TPUEmbedding layer(
        {.feature_config = FeatureConfig{.table = table}, .optimizer = optimizer});
    const Problem problem;
    const int64_t share = Problem::kBatch / strategy.num_replicas_in_sync();
    layer->build(Specs(slice_rows(ragged(problem.ids(0)), 0, share).spec()));
    const Checkpoint checkpoint({.model = layer, .optimizers = {{"optimizer", optimizer}}});
    Dice dice(7);
    layer->update_embedding_table(table, random_tensor(dice, {kRows, kDim}));
    if (restore) checkpoint.restore(path).assert_consumed();
    for (int step = begin; step < end; ++step) {
      strategy.run([&] {
        const ReplicaContext* context = current_replica_context();
        const int64_t at = (context == nullptr ? 0 : context->replica) * share;
        GradientTape tape;
        const Tensor y =
            layer(Tensors(slice_rows(ragged(problem.ids(step)), at, at + share))).tensor();
        const auto variables = layer->trainable_variables();
        optimizer->apply_gradients(tape.gradient(ops::sum(ops::square(y - 1)), variables),
                                   variables);
      });
    }
    checkpoint.write(path, end);
    return layer->embedding_tables()[0].second.to_vector<float>();
  };
  if (then == nullptr) return run(first, 0, 4, false);
  run(first, 0, 2, false);
  return run(*then, 2, 4, true);
}

template <class Make>
void expect_modes_continue_each_other(const Make& make_optimizer) {
  const TemporaryFolder folder;
  const std::string path = folder / "ckpt.h5";
  CPUStrategy host;
  TPUStrategy engine({.num_hosts = 2, .num_cores = 2});
  const Values whole = train_across(host, nullptr, make_optimizer, path);
  expect_near(train_across(engine, nullptr, make_optimizer, path), whole, kTraining);
  expect_near(train_across(host, &engine, make_optimizer, path), whole, kTraining);
  expect_near(train_across(engine, &host, make_optimizer, path), whole, kTraining);
}

TEST(EmbeddingInvariantsTest, ACheckpointCarriesTrainingToTheOtherMode) {
  expect_modes_continue_each_other(
      [] { return OptimizerHandle(optimizers::SGD({.learning_rate = 0.1})); });
  expect_modes_continue_each_other(
      [] { return OptimizerHandle(optimizers::Adagrad({.learning_rate = 0.1})); });
}

TEST(EmbeddingInvariantsTest, AccumulationDoesNotMatterWithoutRepeatedRows) {
  const Problem once = {.repeating = false};
  const auto pairs = [](bool accumulate) -> std::vector<EmbeddingOptimizer> {
    return {tpu::Adagrad{.learning_rate = 0.1, .use_gradient_accumulation = accumulate},
            tpu::Adam{.learning_rate = 0.1,
                      .epsilon = 0.01,
                      .use_gradient_accumulation = accumulate,
                      .weight_decay_factor = 0.1},
            tpu::FTRL{.learning_rate = 0.1, .use_gradient_accumulation = accumulate},
            tpu::AdagradMomentum{
                .learning_rate = 0.1, .momentum = 0.5, .use_gradient_accumulation = accumulate}};
  };
  const auto on = pairs(true), off = pairs(false);
  for (size_t i = 0; i < on.size(); ++i) {
    expect_same_training(train({.num_cores = 3}, on[i], once),
                         train({.num_cores = 3}, off[i], once), kExact);
  }
}

TEST(EmbeddingInvariantsTest, LazyAdamEqualsAdamIfEveryRowIsLookedUp) {
  const Problem all = {.all_rows = true};
  const auto with = [&](bool lazy) {
    return train({.num_cores = 3}, tpu::Adam{.learning_rate = 0.1, .lazy_adam = lazy}, all);
  };
  expect_same_training(with(true), with(false), kExact);
}

TEST(EmbeddingInvariantsTest, FTRLHasTheSameWeightsWithLinearsTimesTheRate) {
  const auto with = [&](bool multiply) {
    return train({.num_cores = 2}, tpu::FTRL{.learning_rate = 0.25,
                                             .l1_regularization_strength = 0.05,
                                             .l2_regularization_strength = 0.1,
                                             .beta = 0.2,
                                             .multiply_linear_by_learning_rate = multiply});
  };
  const Trained on = with(true), off = with(false);
  expect_near(on.state.at("t"), off.state.at("t"), kTraining);
  Values scaled = off.state.at("t/linears");
  for (float& x : scaled) x *= 0.25F;
  expect_near(on.state.at("t/linears"), scaled, kTraining);
}

TEST(EmbeddingInvariantsTest, APipelineOfDisjointBatchesGivesTheSameBits) {
  const EmbeddingOptimizer adagrad = tpu::Adagrad{.learning_rate = 0.1};
  const auto with = [&](bool pipelined) {
    return train({.num_cores = 2}, adagrad, {.disjoint = true, .steps = 5, .pipelined = pipelined});
  };
  const Trained a = with(true), b = with(false);
  EXPECT_EQ(a.state, b.state);
  EXPECT_EQ(a.activations, b.activations);
}

TEST(EmbeddingInvariantsTest, APipelineSeesAllUpdatesButTheLastOnes) {
  Problem problem = {.steps = 5};
  const EmbeddingOptimizer adagrad = tpu::Adagrad{.learning_rate = 0.1};
  const Trained plain = train({.num_cores = 2}, adagrad, problem);
  problem.pipelined = true;
  const Trained late = train({.num_cores = 2}, adagrad, problem);
  EXPECT_EQ(late.activations[0], plain.activations[0]);
  EXPECT_NE(late.activations[1], plain.activations[1]);
  // The gradients do not depend on the activations, so both runs have made the same updates once
  // the last update has run.
  EXPECT_EQ(late.state, plain.state);
}

TEST(EmbeddingInvariantsTest, HostV0AndEngineAgree) {
  const IdRows rows = {{3, 7, 7}, {}, {22, 0, 5, 5}};
  const FloatRows weights = {{0.5, 2, 1}, {}, {1, 0.25, 3, 0.5}};
  for (const char* combiner : kCombiners) {
    for (const bool as_sparse : {false, true}) {
      Dice dice(1);
      OneFeature one = {
          .table_values = random_tensor(dice, {kRows, kDim}),
          .input = as_sparse ? fixture::sparse(rows, 4) : ragged(rows),
          .weights = as_sparse ? fixture::sparse(weights, 4) : ragged(weights),
          .table = {.combiner = combiner},
      };
      const Values host = look_up_on_host(one).to_vector<float>();
      expect_near(look_up_on_engine(one).to_vector<float>(), host, kLookups);
      expect_near(fixture::look_up_on_v0(one).to_vector<float>(), host, kLookups);
    }
  }
}

TEST(EmbeddingInvariantsTest, RowsThatWereNotLookedUpKeepTheirBits) {
  const std::vector<EmbeddingOptimizer> lazy = {
      tpu::SGD{.learning_rate = 0.1, .clip_weight_min = -1, .weight_decay_factor = 0.5},
      tpu::Adagrad{.learning_rate = 0.1},
      tpu::AdagradMomentum{.learning_rate = 0.1, .momentum = 0.5}, tpu::Adam{.learning_rate = 0.1},
      tpu::FTRL{.learning_rate = 0.1}};
  Problem problem = {.disjoint = true, .steps = 1};
  for (const EmbeddingOptimizer& optimizer : lazy) {
    problem.steps = 1;
    const Trained one = train({.num_cores = 3}, optimizer, problem);
    problem.steps = 2;  // touches odd rows only
    const Trained two = train({.num_cores = 3}, optimizer, problem);
    for (const auto& [name, before] : one.state) {
      const Values& after = two.state.at(name);
      for (size_t i = 0; i < before.size(); ++i) {
        if (static_cast<int64_t>(i) / kDim % 2 == 0) {
          EXPECT_EQ(after[i], before[i]) << name << " " << i;
        }
      }
    }
  }
}

TEST(EmbeddingInvariantsTest, TheVirtualVariableStaysZero) {
  const std::function<OptimizerHandle()> makers[] = {
      [] { return OptimizerHandle(optimizers::SGD({.learning_rate = 0.1})); },
      [] { return OptimizerHandle(optimizers::Adagrad({.learning_rate = 0.1})); },
      [] { return OptimizerHandle(optimizers::Ftrl({.learning_rate = 0.1})); }};
  for (const auto& make_optimizer : makers) {
    TPUStrategy strategy({.num_cores = 2});
    const auto scope = strategy.scope();
    const OptimizerHandle optimizer = make_optimizer();
    const Table table = make_table({.vocabulary_size = 4, .dim = 2});
    const TPUEmbedding layer(
        {.feature_config = FeatureConfig{.table = table}, .optimizer = optimizer});
    for (int step = 0; step < 3; ++step) {
      strategy.run([&] {
        GradientTape tape;
        const Tensor loss = ops::sum(layer(fixture::ids({1, 3}, {2})));
        const auto variables = layer->trainable_variables();
        optimizer->apply_gradients(tape.gradient(loss, variables), variables);
      });
    }
    EXPECT_EQ(layer->trainable_variables()[0].read().to_vector<float>(), Values{0});
  }
}

}  // namespace keel::invariants_test
