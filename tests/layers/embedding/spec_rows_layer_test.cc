// Rows F01-F09 and F13-F16: the Keras layer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/schedules/schedules.h>
#include <keel/optimizers/sgd.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>

#include "tests/support/embedding_fixture.h"
#include "tests/support/temporary_folder.h"

namespace keel::spec_rows_layer_test {

using distribute::CPUStrategy;
using distribute::Strategy;
using distribute::TPUStrategy;
using fixture::counting;
using fixture::ids;
using fixture::Standard;
using layers::TPUEmbedding;
using testing::HasSubstr;
using testing::Not;
using testing_support::TemporaryFolder;
using Values = std::vector<float>;

Specs dense_spec(int64_t batch) {
  return Specs(TensorSpec{.shape = {batch}, .dtype = DType::kInt64});
}

// A layer with one 4 x 2 table of zeros.
struct OneTable {
  Table table = make_table({.vocabulary_size = 4, .dim = 2, .initializer = "zeros", .name = "t"});
  TPUEmbedding layer;
  explicit OneTable(const EmbeddingOptimizer& optimizer)
      : layer({.feature_config = FeatureConfig{.table = table}, .optimizer = optimizer}) {
    layer->build(dense_spec(1));
  }
  Tensor loss() const { return ops::sum(layer(ids({1}, {1}))); }
  Values values() const { return layer->embedding_tables()[0].second.to_vector<float>(); }
};

TEST(SpecRowsF, F01_OneVirtualVariableIsTrainedOnTheAccelerator) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const TPUEmbedding layer = Standard().layer("sgd", Standard::sparse_batch(0, 2));
  const std::vector<Variable> variables = layer->trainable_variables();
  ASSERT_EQ(variables.size(), 1U);
  EXPECT_EQ(variables[0].name(), "tpu_embedding_helper_dummy");
  EXPECT_EQ(variables[0].shape(), Shape({1}));
  EXPECT_EQ(variables[0].dtype(), DType::kFloat32);
  EXPECT_EQ(variables[0].read().to_vector<float>(), Values{0});
  EXPECT_EQ(layer->weights().size(), 1U);
}

TEST(SpecRowsF, F02_TheTablesAreTrainedOnTheHostInOrderOfFirstUse) {
  const TPUEmbedding layer = Standard().layer("sgd", Standard::sparse_batch(0, 2));
  const std::vector<Variable> variables = layer->trainable_variables();
  ASSERT_EQ(variables.size(), 2U);
  EXPECT_EQ(variables[0].name(), "video");
  EXPECT_EQ(variables[1].name(), "user");
  EXPECT_EQ(layer->weights().size(), 2U);
}

TEST(SpecRowsF, F03_TheGradientOfTheVirtualVariableIsTheUpdate) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const OneTable one(tpu::SGD{.learning_rate = 0.5});
  strategy.run([&] {
    GradientTape tape;
    const auto gradients = tape.gradient(one.loss(), one.layer->trainable_variables());
    EXPECT_EQ(gradients[0].dense().to_vector<float>(), Values{0});
  });
  EXPECT_EQ(one.values(), (Values{0, 0, -0.5, -0.5, 0, 0, 0, 0}));
}

TEST(SpecRowsF, F04_WithoutTheVirtualVariableNothingIsUpdated) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const OneTable one(tpu::SGD{.learning_rate = 0.5});
  const Variable kernel(Tensor::full<float>({2, 1}, 1), {.name = "kernel"});
  strategy.run([&] {
    GradientTape tape;
    const Tensor loss = ops::sum(ops::matmul(one.layer(ids({1}, {1})), kernel));
    tape.gradient(loss, {kernel});
  });
  EXPECT_EQ(one.values(), Values(8, 0.0F));
}

TEST(SpecRowsF, F05_OptimizersCountStepsAndLeaveTheVirtualVariableZero) {
  const std::vector<OptimizerHandle> all = {
      OptimizerHandle(optimizers::SGD({})), OptimizerHandle(optimizers::Adagrad({})),
      OptimizerHandle(optimizers::Adam({})), OptimizerHandle(optimizers::Ftrl({}))};
  for (const OptimizerHandle& optimizer : all) {
    TPUStrategy strategy({.num_cores = 1});
    const auto scope = strategy.scope();
    const OneTable one("sgd");
    const auto variables = one.layer->trainable_variables();
    for (int step = 0; step < 10; ++step) {
      strategy.run([&] { optimizer->apply_gradients({Tensor::zeros({1})}, variables); });
    }
    EXPECT_EQ(optimizer->iterations(), 10);
    EXPECT_EQ(variables[0].read().to_vector<float>(), Values{0});
  }
}

// A layer after one step of Adagrad on ids {1}, its optimizer and the state that a checkpoint
// holds.
struct Trained {
  optimizers::Adagrad optimizer{{.learning_rate = 0.5}};
  OneTable one{optimizer};
  void step(Strategy& strategy) const {
    strategy.run([&] {
      GradientTape tape;
      const auto variables = one.layer->trainable_variables();
      optimizer->apply_gradients(tape.gradient(one.loss(), variables), variables);
    });
  }
  CheckpointItems items() const { return {.model = one.layer, .optimizers = {{"o", optimizer}}}; }
};

TEST(SpecRowsF, F06_TheVirtualVariableIsNotSavedAndTheHostFindsTablesAndSlots) {
  const TemporaryFolder folder;
  Values saved;
  {
    TPUStrategy strategy({.num_cores = 2});
    const auto scope = strategy.scope();
    const Trained there;
    there.step(strategy);
    for (const StateEntry& entry : there.one.layer->state_entries()) {
      EXPECT_THAT(entry.name, Not(HasSubstr("dummy")));
    }
    Checkpoint(there.items()).write(folder / "c", 1);
    saved = there.one.values();
  }
  CPUStrategy strategy;
  const auto scope = strategy.scope();
  const Trained here;
  const RestoreStatus status = Checkpoint(here.items()).restore(folder / "c");
  EXPECT_NO_THROW(status.assert_consumed());
  EXPECT_EQ(here.one.values(), saved);
  const auto slots = here.optimizer->slots(here.one.layer->trainable_variables()[0]);
  ASSERT_EQ(slots.size(), 1U);
  // Two replicas each sent a gradient of 1: 0.1 + 2^2.
  EXPECT_FLOAT_EQ(slots[0].read().data<float>()[2], 4.1F);
}

TEST(SpecRowsF, F07_CallsUnderAnotherStrategyAreErrorsUnlessServing) {
  const OneTable host("sgd");
  TPUStrategy strategy({.num_cores = 1});
  std::optional<OneTable> engine;
  {
    const auto scope = strategy.scope();
    engine.emplace("sgd");
  }
  EXPECT_THROW(strategy.run([&] { host.loss(); }), RuntimeError);
  EXPECT_THROW(engine->loss(), RuntimeError);
  const auto serve = [](const OneTable& one) {
    const Nest<FeatureConfig> config = FeatureConfig{.table = one.table};
    one.layer(Tensors(ids({1}, {1})), {.serving_config = config});
  };
  EXPECT_NO_THROW(serve(*engine));
  const auto scope = strategy.scope();
  EXPECT_NO_THROW(serve(host));
}

TEST(SpecRowsF, F08_ServingLooksUpCurrentTablesOnTheHost) {
  const auto serve = [](Strategy& strategy) {
    const auto scope = strategy.scope();
    const Standard f;
    const TPUEmbedding layer = f.layer("sgd", Standard::ragged_batch(0, 2));
    const Nest<FeatureConfig> config = FeatureConfig{.table = f.user, .max_sequence_length = 2};
    const Tensors rows = Standard::ragged_batch()["friends"];
    fixture::expect_tensor(layer(rows, {.serving_config = config}).tensor(), {4, 2, 2},
                           {6, 7, 0, 0, 0, 1, 2, 3, 6, 7, 0, 0, 0, 1, 2, 3});
  };
  CPUStrategy cpu;
  TPUStrategy tpu({.num_cores = 2});
  serve(cpu);
  serve(tpu);
}

TEST(SpecRowsF, F09_ServingWithAForeignTableIsAnError) {
  const OneTable one("sgd");
  const Table equal = make_table(*one.table);
  const Nest<FeatureConfig> config = FeatureConfig{.table = equal};
  EXPECT_THROW(one.layer(Tensors(ids({1}, {1})), {.serving_config = config}), ValueError);
}

TEST(SpecRowsF, F13_AScheduleCountsTheStepsOfItsOptimizer) {
  for (const bool apply : {true, false}) {
    TPUStrategy strategy({.num_cores = 1});
    const auto scope = strategy.scope();
    const optimizers::SGD sgd(
        {.learning_rate = optimizers::schedules::InverseTimeDecay(
             {.initial_learning_rate = 1, .decay_steps = 1, .decay_rate = 1})});
    const OneTable one(sgd);
    for (int step = 0; step < 3; ++step) {
      strategy.run([&] {
        GradientTape tape;
        const auto variables = one.layer->trainable_variables();
        const auto gradients = tape.gradient(one.loss(), variables);
        if (apply) sgd->apply_gradients(gradients, variables);
      });
    }
    EXPECT_NEAR(one.values()[2], apply ? -1.8333333 : -3.0, 1e-6);
  }
}

// Runs three steps with separate optimizers for the tables and the kernel. Returns the table, then
// the kernel.
Values trained_apart(Strategy& strategy) {
  const auto scope = strategy.scope();
  const optimizers::SGD of_tables({.learning_rate = 1.0});
  const optimizers::SGD of_dense({.learning_rate = 0.1});
  const Table table = make_table({.vocabulary_size = 4, .dim = 2});
  const TPUEmbedding layer(
      {.feature_config = FeatureConfig{.table = table}, .optimizer = of_tables});
  layer->build(dense_spec(2));
  layer->update_embedding_table(table, counting(4, 2));
  const Variable kernel(Tensor::from<float>({0.5, -0.25}, {2, 1}), {.name = "kernel"});
  std::vector<Variable> all = layer->trainable_variables();
  all.push_back(kernel);
  for (int step = 0; step < 3; ++step) {
    strategy.run([&] {
      GradientTape tape;
      const Tensor y = ops::matmul(layer(ids({1, 3}, {2})), kernel);
      const auto gradients = tape.gradient(ops::sum(ops::square(y - 1)), all);
      const auto embedding_variables = layer->trainable_variables();
      std::vector<Gradient> table_gradients, dense_gradients;
      std::vector<Variable> table_variables, dense_variables;
      for (size_t i = 0; i < all.size(); ++i) {
        const bool of_layer =
            std::ranges::find(embedding_variables, all[i]) != embedding_variables.end();
        (of_layer ? table_gradients : dense_gradients).push_back(gradients[i]);
        (of_layer ? table_variables : dense_variables).push_back(all[i]);
      }
      of_tables->apply_gradients(table_gradients, table_variables);
      of_dense->apply_gradients(dense_gradients, dense_variables);
    });
  }
  Values out = layer->embedding_tables()[0].second.to_vector<float>();
  for (const float x : kernel.read().to_vector<float>()) out.push_back(x);
  return out;
}

TEST(SpecRowsF, F14_SeparateOptimizersGiveTheSameResultInBothModes) {
  CPUStrategy cpu;
  TPUStrategy tpu({.num_cores = 1});
  const Values expected = trained_apart(cpu);
  EXPECT_EQ(trained_apart(tpu), expected);
  EXPECT_NE(expected[2], 2);
  EXPECT_NE(expected[8], 0.5F);
}

TEST(SpecRowsF, F15_TablesGivenToTwoLayersStayAsTheyWere) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const Table table = make_table({.vocabulary_size = 4, .dim = 2, .initializer = "zeros"});
  const FeatureConfig feature = {.table = table};
  const TPUEmbedding first(
      {.feature_config = feature, .optimizer = tpu::SGD{.learning_rate = 1.0}});
  const TPUEmbedding second(
      {.feature_config = feature, .optimizer = tpu::SGD{.learning_rate = 0.25}});
  EXPECT_TRUE(table->name.empty());
  EXPECT_FALSE(table->optimizer);
  second->build(dense_spec(1));
  strategy.run([&] {
    GradientTape tape;
    tape.gradient(ops::sum(second(ids({1}, {1}))), second->trainable_variables());
  });
  EXPECT_EQ(second->embedding_tables()[0].second.data<float>()[2], -0.25F);
}

TEST(SpecRowsF, F16_EveryOptimizerTrainsAndEvaluatesEveryKindOfInput) {
  for (const char* optimizer : {"sgd", "adagrad", "adam"}) {
    for (const Tensors& batch : {Standard::sparse_batch(), Standard::ragged_batch()}) {
      for (const bool training : {true, false}) {
        TPUStrategy strategy({.num_cores = 1});
        const auto scope = strategy.scope();
        const TPUEmbedding layer = Standard().layer(optimizer, batch);
        strategy.run([&] {
          GradientTape tape;
          const Tensors out = layer(batch, {.training = training});
          EXPECT_EQ(out["watched"].tensor().shape(), Shape({4, 4}));
          EXPECT_EQ(out["favorited"].tensor().shape(), Shape({4, 4}));
          EXPECT_EQ(out["friends"].tensor().shape(), Shape({4, 2}));
          const Tensor loss = fixture::squares_loss(out, 4);
          EXPECT_EQ(loss.item<float>(), 335);
          if (training) tape.gradient(loss, layer->trainable_variables());
        });
        // Adagrad and Adam also change the first rows, by about their learning rates.
        const Values video = layer->embedding_tables()[0].second.to_vector<float>();
        EXPECT_EQ(video == counting(8, 4).to_vector<float>(), !training) << optimizer;
      }
    }
  }
}

}  // namespace keel::spec_rows_layer_test
