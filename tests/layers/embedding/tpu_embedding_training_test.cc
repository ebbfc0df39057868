// Updates of the tables of TPUEmbedding by gradients of its virtual variable on an engine, and by
// the gradients of its tables on the host.
#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/schedules/schedules.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/embedding_fixture.h"
#include "tests/support/tensors.h"

namespace keel::tpu_embedding_training_test {

using distribute::TPUStrategy;
using fixture::Standard;
using layers::TPUEmbedding;
using testing_support::ids;
using testing_support::values_of;
using Values = std::vector<float>;

TEST(TPUEmbeddingTrainingTest, OneVirtualVariableStandsForTheTablesOfAnEngine) {
  const Standard f;
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const TPUEmbedding layer = f.unbuilt_layer();
  layer->build(specs_of(Standard::ragged_batch(0, 2)));
  const std::vector<Variable> variables = layer->trainable_variables();
  ASSERT_EQ(variables.size(), 1U);
  EXPECT_EQ(variables[0].name(), "tpu_embedding_helper_dummy");
  EXPECT_TRUE(variables[0].is_virtual());
  EXPECT_EQ(variables[0].read().to_vector<float>(), Values{0});
}

TEST(TPUEmbeddingTrainingTest, OnTheHostTheTablesAreTrainableInOrderOfFirstUse) {
  const Standard f;
  const TPUEmbedding layer = f.unbuilt_layer();
  layer->build(specs_of(Standard::ragged_batch(0, 2)));
  const std::vector<Variable> variables = layer->trainable_variables();
  ASSERT_EQ(variables.size(), 2U);
  // Dict entries are visited by sorted key: favorited (video) first, then friends (user).
  EXPECT_EQ(variables[0].shape(), Shape({8, 4}));
  EXPECT_EQ(variables[1].shape(), Shape({16, 2}));
}

// One table of zeros. The tests look up id 1 with a sum as the loss: the gradient of the row is 1.
struct OneRow {
  Table table = make_table({.vocabulary_size = 4, .dim = 2, .initializer = "zeros"});
  TPUEmbedding layer;
  explicit OneRow(const EmbeddingOptimizer& optimizer)
      : layer({.feature_config = FeatureConfig{.table = table}, .optimizer = optimizer}) {
    layer->build(Specs(TensorSpec{.shape = {1}, .dtype = DType::kInt64}));
  }
  Values values() const { return layer->embedding_tables()[0].second.to_vector<float>(); }
};

TEST(TPUEmbeddingTrainingTest, TakingTheGradientOfTheVirtualVariableUpdatesTheTables) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const OneRow one{tpu::SGD{.learning_rate = 0.5}};
  strategy.run([&] {
    GradientTape tape;
    const Tensor loss = ops::sum(one.layer(ids({1})));
    const auto gradients = tape.gradient(loss, one.layer->trainable_variables());
    EXPECT_EQ(gradients[0].dense().to_vector<float>(), Values{0});
  });
  EXPECT_EQ(one.values(), (Values{0, 0, -0.5, -0.5, 0, 0, 0, 0}));
}

TEST(TPUEmbeddingTrainingTest, GradientsOfOtherVariablesLeaveTheTablesAlone) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const OneRow one{tpu::SGD{.learning_rate = 0.5}};
  const Variable other(Tensor::scalar<float>(2), {.name = "other"});
  strategy.run([&] {
    GradientTape tape;
    const Tensor loss = ops::sum(one.layer(ids({1}))) + other;
    EXPECT_EQ(tape.gradient(loss, {other})[0].dense().item<float>(), 1);
  });
  EXPECT_EQ(one.values(), Values(8, 0.0F));
}

TEST(TPUEmbeddingTrainingTest, ASecondGradientOfOneLookupIsAnError) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const OneRow one{"sgd"};
  EXPECT_THROW(strategy.run([&] {
    GradientTape tape({.persistent = true});
    const Tensor loss = ops::sum(one.layer(ids({1})));
    tape.gradient(loss, one.layer->trainable_variables());
    tape.gradient(loss, one.layer->trainable_variables());
  }),
               RuntimeError);
  EXPECT_EQ(one.values()[2], -0.02F) << "the first one counts, summed over the replicas";
}

TEST(TPUEmbeddingTrainingTest, SeveralCallsOfOneStepAreUpdatedInReverseOrder) {
  for (const bool pipelined : {false, true}) {
    TPUStrategy strategy({.num_cores = 1});
    const auto scope = strategy.scope();
    const Table table = make_table({.vocabulary_size = 4, .dim = 1, .initializer = "zeros"});
    const TPUEmbedding layer({.feature_config = FeatureConfig{.table = table},
                              .optimizer = tpu::Adagrad{.learning_rate = 1},
                              .pipeline_execution_with_tensor_core = pipelined});
    strategy.run([&] {
      GradientTape tape;
      const Tensor first = layer(ids({2}));
      const Tensor second = layer(ids({2}));
      EXPECT_EQ(values_of(second), Values{0});
      tape.gradient(ops::sum(first) + ops::sum(second) * 3, layer->trainable_variables());
    });
    const Values rows = layer->embedding_tables()[0].second.to_vector<float>();
    EXPECT_NEAR(rows[2], -3 / std::sqrt(9.1) - 1 / std::sqrt(10.1), 1e-6);
  }
}

TEST(TPUEmbeddingTrainingTest, EvaluationChangesNothing) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const OneRow one{"adagrad"};
  strategy.run([&] { one.layer(ids({1, 2, 3})); });
  EXPECT_EQ(one.values(), Values(8, 0.0F));
}

TEST(TPUEmbeddingTrainingTest, TheOptimizerCountsStepsForTheVirtualVariableAndLeavesItZero) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const OneRow one{"sgd"};
  const optimizers::Adam adam({});
  for (int step = 0; step < 3; ++step) {
    strategy.run([&] {
      GradientTape tape;
      const Tensor loss = ops::sum(one.layer(ids({1})));
      const auto variables = one.layer->trainable_variables();
      adam->apply_gradients(tape.gradient(loss, variables), variables);
    });
  }
  EXPECT_EQ(adam->iterations(), 3);
  EXPECT_EQ(one.layer->trainable_variables()[0].read().to_vector<float>(), Values{0});
}

TEST(TPUEmbeddingTrainingTest, AScheduleFollowsTheIterationsOfItsOptimizer) {
  for (const bool apply : {true, false}) {
    TPUStrategy strategy({.num_cores = 1});
    const auto scope = strategy.scope();
    const optimizers::SGD sgd(
        {.learning_rate = optimizers::schedules::InverseTimeDecay(
             {.initial_learning_rate = 1, .decay_steps = 1, .decay_rate = 1})});
    const OneRow one{sgd};
    for (int step = 0; step < 3; ++step) {
      strategy.run([&] {
        GradientTape tape;
        const Tensor loss = ops::sum(one.layer(ids({1})));
        const auto variables = one.layer->trainable_variables();
        const auto gradients = tape.gradient(loss, variables);
        if (apply) sgd->apply_gradients(gradients, variables);
      });
    }
    // Rates of 1, 1/2 and 1/3 if the iterations advance, else three steps at the first rate.
    EXPECT_NEAR(one.values()[2], apply ? -1.8333333 : -3.0, 1e-6);
  }
}

TEST(TPUEmbeddingTrainingTest, ACallableRateRunsOnceForEachStep) {
  TPUStrategy strategy({.num_cores = 3});
  const auto scope = strategy.scope();
  int calls = 0;
  const OneRow one{
      tpu::SGD{.learning_rate = std::function<double()>([&] { return 1.0 / ++calls; })}};
  for (int step = 0; step < 2; ++step) {
    strategy.run([&] {
      GradientTape tape;
      tape.gradient(ops::sum(one.layer(ids({1}))), one.layer->trainable_variables());
    });
  }
  EXPECT_EQ(calls, 2);
  EXPECT_FLOAT_EQ(one.values()[2], -3 * (1 + 0.5F));
}

TEST(TPUEmbeddingTrainingTest, FourReplicasTrainAsTheHostDoesWithATranslatedOptimizer) {
  for (const bool adagrad : {false, true}) {
    const auto train = [&](distribute::Strategy& strategy) {
      set_random_seed(5);
      const auto scope = strategy.scope();
      const OptimizerHandle optimizer =
          adagrad ? OptimizerHandle(optimizers::Adagrad({.learning_rate = 0.1}))
                  : OptimizerHandle(optimizers::SGD({.learning_rate = 0.1}));
      const Table table = make_table({.vocabulary_size = 20, .dim = 3, .combiner = "sqrtn"});
      const TPUEmbedding layer(
          {.feature_config = FeatureConfig{.table = table}, .optimizer = optimizer});
      layer->build(Specs(
          TensorSpec{.shape = {2, kUnknown}, .dtype = DType::kInt64, .layout = Layout::kRagged}));
      const int replicas = strategy.num_replicas_in_sync();
      for (int64_t step = 0; step < 20; ++step) {
        strategy.run([&] {
          std::vector<std::vector<int64_t>> rows;
          for (int64_t row = 0; row < 8 / replicas; ++row) {
            const int64_t global = current_replica_context()->replica * (8 / replicas) + row;
            rows.push_back({(global * 7 + step) % 20, (global + step * 3) % 20, 4});
          }
          GradientTape tape;
          const Tensor y = layer(Tensors(RaggedTensor::from_rows(rows))).tensor();
          const Tensor loss = ops::sum(ops::square(y - 1)) / 8.0;
          const auto variables = layer->trainable_variables();
          optimizer->apply_gradients(tape.gradient(loss, variables), variables);
        });
      }
      return layer->embedding_tables()[0].second.to_vector<float>();
    };
    distribute::CPUStrategy cpu;
    TPUStrategy tpu({.num_cores = 4});
    const Values expected = train(cpu);
    const Values received = train(tpu);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(received[i], expected[i], 1e-4 * std::abs(expected[i]) + 1e-7) << i;
    }
  }
}

TEST(TPUEmbeddingTrainingTest, InitialTablesAreEqualOnEngineAndHost) {
  const auto first_values = [](distribute::Strategy& strategy) {
    set_random_seed(9);
    const auto scope = strategy.scope();
    const Standard f;
    const TPUEmbedding layer = f.unbuilt_layer();
    layer->build(specs_of(Standard::ragged_batch(0, 2)));
    return layer->embedding_tables()[1].second.to_vector<float>();
  };
  distribute::CPUStrategy cpu;
  TPUStrategy tpu({.num_cores = 3});
  EXPECT_EQ(first_values(cpu), first_values(tpu));
}

TEST(TPUEmbeddingTrainingTest, SeparateOptimizersGiveTheSameResultInBothModes) {
  const auto train = [](distribute::Strategy& strategy) {
    set_random_seed(3);
    const auto scope = strategy.scope();
    const optimizers::SGD of_tables({.learning_rate = 1.0});
    const optimizers::SGD of_dense({.learning_rate = 0.1});
    const Table table = make_table({.vocabulary_size = 4, .dim = 2});
    const TPUEmbedding layer(
        {.feature_config = FeatureConfig{.table = table}, .optimizer = of_tables});
    layer->build(Specs(TensorSpec{.shape = {2}, .dtype = DType::kInt64}));
    const Variable kernel(Tensor::from<float>({0.5, -0.25}, {2, 1}), {.name = "kernel"});
    for (int step = 0; step < 3; ++step) {
      strategy.run([&] {
        GradientTape tape;
        const Tensor loss = ops::sum(ops::square(ops::matmul(layer(ids({1, 3})), kernel) - 1));
        std::vector<Variable> variables = layer->trainable_variables();
        variables.push_back(kernel);
        const auto gradients = tape.gradient(loss, variables);
        of_tables->apply_gradients({gradients[0]}, {variables[0]});
        of_dense->apply_gradients({gradients[1]}, {kernel});
      });
    }
    Values out = layer->embedding_tables()[0].second.to_vector<float>();
    for (float x : kernel.read().to_vector<float>()) out.push_back(x);
    return out;
  };
  distribute::CPUStrategy cpu;
  TPUStrategy tpu({.num_cores = 1});
  EXPECT_EQ(train(cpu), train(tpu));
}

}  // namespace keel::tpu_embedding_training_test
