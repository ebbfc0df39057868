// Counts how often a process waits for others in a training step: each wait costs the latency of
// the link between the machines.
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/callbacks.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/losses/regression.h>
#include <keel/layers/merging/merging.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>

#include "tests/distribute/fake_processes.h"

namespace keel::process_waits_test {

using distribute::FakeJob;
using distribute::ProcessGroup;
using distribute::TPUStrategy;

constexpr int64_t kRows = 8;
constexpr int64_t kMostWaits = 6;

struct Ranker {
  layers::TPUEmbedding tables;
  Functional model;
};

// The processes are threads of one program. They share random streams and name counters, so the
// model uses no random values and no default names.
Ranker make_ranker() {
  const Table items =
      make_table({.vocabulary_size = 40, .dim = 4, .initializer = "ones", .name = "items"});
  const Tensors in = {
      {"item", layers::input({.shape = {}, .dtype = DType::kInt64, .name = "item"})},
      {"price", layers::input({.shape = {1}, .name = "price"})}};
  const layers::TPUEmbedding tables({.feature_config = {{"item", FeatureConfig{.table = items}}},
                                     .optimizer = optimizers::Adagrad({.learning_rate = 0.1}),
                                     .name = "tables"});
  const Tensors found = tables({{"item", in["item"]}});
  const Tensor x = layers::Concatenate({})(Tensors::list({found["item"], in["price"]})).tensor();
  return {
      tables,
      Functional(
          {.inputs = in,
           .outputs = layers::Dense({.units = 1, .kernel_initializer = "ones", .name = "score"})(
               layers::Dense({.units = 3, .kernel_initializer = "ones", .name = "hidden"})(x))})};
}

Tensors features() {
  std::vector<int64_t> items;
  std::vector<float> prices;
  for (int64_t i = 0; i < kRows; ++i) {
    items.push_back(i * 5 % 40);
    prices.push_back(static_cast<float>(i) / 4);
  }
  return {{"item", Tensor::from(items, {kRows})}, {"price", Tensor::from(prices, {kRows, 1})}};
}

Tensor labels() { return Tensor::full<float>({kRows, 1}, 1); }

TEST(ProcessWaitsTest, AStepOfFitWaitsSixTimes) {
  FakeJob job(2);
  const auto errors = job.run([](ProcessGroup& group) {
    TPUStrategy strategy({.num_hosts = 2, .num_cores = 2}, group);
    const auto scope = strategy.scope();
    const Ranker ranker = make_ranker();
    ranker.model->compile(
        {.optimizer = optimizers::Adam({}), .loss = "mse", .metrics = {"mae", "binary_accuracy"}});
    int64_t before = 0;
    std::vector<int64_t> waits;
    const auto count = callbacks::LambdaCallback({.on_train_batch_end = [&](int64_t, const Logs&) {
      waits.push_back(FakeJob::waits(group) - std::exchange(before, FakeJob::waits(group)));
    }});
    ranker.model->fit(
        features(), labels(),
        {.epochs = 6, .batch_size = kRows, .verbose = Verbose::kSilent, .callbacks = {count}});
    // The first steps check the agreement of the processes; resetting metrics in an epoch does not
    // wait.
    ASSERT_EQ(waits.size(), 6U);
    for (size_t step = 3; step < waits.size(); ++step) EXPECT_EQ(waits[step], kMostWaits) << step;
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(ProcessWaitsTest, AStepOfACustomLoopWithTwoOptimizersWaitsSixTimes) {
  FakeJob job(2);
  const auto errors = job.run([](ProcessGroup& group) {
    TPUStrategy strategy({.num_hosts = 2, .num_cores = 2}, group);
    const auto scope = strategy.scope();
    const Ranker ranker = make_ranker();
    const OptimizerHandle of_tables = optimizers::Adagrad({}), of_dense = optimizers::Adam({});
    const auto batches = strategy.experimental_distribute_dataset(
        data::Dataset::from_tensors(Tensors::tuple({features(), labels()})));
    const auto batch = *batches.iterator()();
    const auto step = [&] {
      std::vector<Tensor> counts;
      for (const Tensors& part : batch.values()) {
        counts.push_back(Tensor::scalar(static_cast<double>(row_count(part))));
      }
      const double rows =
          strategy.reduce(distribute::ReduceOp::kSum, distribute::PerReplica(counts))
              .item<double>();
      const auto losses = strategy.run(
          [&](const Tensors& part) {
            GradientTape tape;
            const Tensor y = ranker.model(part[0], {.training = true}).tensor();
            const Tensor loss = ops::sum(ops::square(y - part[1].tensor())) / rows;
            const std::vector<Variable> variables = ranker.model->trainable_variables();
            const std::vector<Gradient> gradients = tape.gradient(loss, variables);
            std::vector<Variable> tables, dense;
            std::vector<Gradient> table_gradients, dense_gradients;
            for (size_t i = 0; i < variables.size(); ++i) {
              const bool is_table = variables[i].is_virtual();
              (is_table ? tables : dense).push_back(variables[i]);
              (is_table ? table_gradients : dense_gradients).push_back(gradients[i]);
            }
            of_tables->apply_gradients(table_gradients, tables);
            of_dense->apply_gradients(dense_gradients, dense);
            return loss;
          },
          batch);
      return strategy.reduce(distribute::ReduceOp::kSum, losses).item<float>();
    };
    for (int i = 0; i < 3; ++i) step();
    for (int i = 0; i < 3; ++i) {
      const int64_t before = FakeJob::waits(group);
      step();
      EXPECT_EQ(FakeJob::waits(group) - before, kMostWaits);
    }
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

}  // namespace keel::process_waits_test
