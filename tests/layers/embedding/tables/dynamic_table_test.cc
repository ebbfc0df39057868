// Tests layers/embedding/tables/dynamic_table.cc and internal/dynamic_entries.cc: calls between
// steps to tables with dynamic ids, and the objects that have them.
#include <keel/layers/embedding/tables/dynamic_table.h>

#include <algorithm>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/internal/active_engine.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/random.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/embedding/mid_level/embedding_base.h>
#include <keel/layers/embedding/mid_level/tpu_embedding.h>
#include <keel/layers/embedding/partial_tpu_embedding.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/sgd.h>

#include "tests/layers/embedding/tables/dynamic_job.h"
#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::dynamic_table_test {

using distribute::TPUStrategy;
using dynamic_job::gradient_factors;
using dynamic_job::Job;
using dynamic_job::on_both;
using dynamic_job::sgd;
using dynamic_job::static_twin;
using dynamic_job::table_with;
using dynamic_job::twin_batches;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::IdRows;
using testing_support::ids;
using testing_support::message_of;
using testing_support::ragged;

TEST(DynamicTableTest, D079NoticesNameSizeAndShares) {
  on_both({.table = table_with(
               {.capacity = 2, .admission = Admission::count(2), .on_full = OnFull::kRefuse})},
          [](Job& job) {
            for (int step = 0; step < 2; ++step) job.train(ragged(IdRows{{1, 2, 3}, {4}}));
            EXPECT_THAT(job.layer()->training_notices(),
                        ElementsAre(AllOf(HasSubstr("'items' has 2 rows"),
                                          HasSubstr("50 % of the ids were not admitted"),
                                          HasSubstr("0 ids were evicted, 2 were refused"))));
          });
}

TEST(DynamicTableTest, D085CallsInsideAReplicaAreRuntimeErrors) {
  Job job(table_with({}));
  job.train(ragged(IdRows{{1}}));
  const DynamicTable table = job.dynamic();
  const auto expect_refused = [&](const auto& call) {
    EXPECT_THAT(message_of<RuntimeError>([&] { job.strategy().run(call); }),
                HasSubstr("inside a replica"));
  };
  expect_refused([&] { table.prune({.max_rows = 0}); });
  expect_refused([&] { table.keys(); });
  expect_refused([&] { table.assign_rows(ids({1}), Tensor::zeros({1, 2})); });
  EXPECT_THAT(job.keys(), ElementsAre(1));
}

TEST(DynamicTableTest, D086HandlesOfOtherTablesAreValueErrors) {
  Job job(table_with({}));
  job.train(ragged(IdRows{{1}}));
  EXPECT_THAT(message_of<ValueError>([&] { job.layer()->dynamic_table(table_with({})); }),
              HasSubstr("not a table of layer"));
  const Table fixed = static_twin("sgd", "sum");
  Job other(fixed, Job::kVariable);
  other.evaluate(ragged(IdRows{{1}}));
  EXPECT_THAT(message_of<ValueError>([&] { other.layer()->dynamic_table(fixed); }),
              HasSubstr("vocabulary"));
  EXPECT_THROW(job.layer()->dynamic_table(nullptr), ValueError);
}

TEST(DynamicTableTest, UpdateEmbeddingTableNamesAssignRows) {
  const Table table = table_with({});
  on_both({.table = table}, [&](Job& job) {
    job.train(ragged(IdRows{{1}}));
    EXPECT_THAT(message_of<ValueError>(
                    [&] { job.layer()->update_embedding_table(table, Tensor::zeros({1, 2})); }),
                HasSubstr("assign_rows"));
  });
}

TEST(DynamicTableTest, CallsReadAndChangeRows) {
  on_both({.table = table_with({.capacity = 4}, "adagrad")}, [&](Job& job) {
    job.train(ragged(IdRows{{7, 3, 3}}));
    const DynamicTable table = job.dynamic();
    EXPECT_EQ(table.size(), 2);
    EXPECT_EQ(table.load(), 0.5);
    EXPECT_THAT(table.contains(ids({3, 4})), ElementsAre(1, 0));
    EXPECT_EQ(table.info(3).count, 2);
    EXPECT_FALSE(table.info(4).admitted);
    EXPECT_GT(table.memory().rows, 0);
    table.assign_rows(ids({4, 3}), testing_support::floats({1, 2, 3, 4}, {2, 2}));
    EXPECT_THAT(table.rows(ids({3, 4})).to_vector<float>(), ElementsAre(3, 4, 1, 2));
    EXPECT_THAT(job.evaluate(ragged(IdRows{{3, 4}})), ElementsAre(4, 6));
    EXPECT_THAT(message_of<ValueError>([&] { table.rows(ids({3, 8})); }), HasSubstr("id 8"));
    EXPECT_THROW(table.slots("nothing", ids({3})), ValueError);
    EXPECT_THROW(table.assign_rows(ids({5, 5}), Tensor::zeros({2, 2})), ValueError);
    EXPECT_THROW(table.assign_rows(ids({5}), Tensor::zeros({1, 3})), ValueError);
    EXPECT_THROW(table.assign_rows(ids({5, 6}), Tensor::zeros({2, 2})), ValueError);
    EXPECT_EQ(table.prune({.max_rows = 1}), 2);
  });
}

TEST(DynamicTableTest, D078TheMidLevelObjectEqualsTheLayer) {
  const DynamicVocabulary dynamic = {.capacity = 9, .headroom = 0, .eviction = Eviction::lru()};
  Job layer(table_with(dynamic, tpu::Adagrad{.learning_rate = 0.1}));
  std::vector<std::vector<float>> activations;
  for (uint64_t step = 0; step < 6; ++step) {
    activations.push_back(layer.train(twin_batches(step, 1)[0]));
  }
  const std::vector<float> rows = layer.rows();

  TPUStrategy strategy({.num_hosts = 1, .num_cores = 1});
  const auto scope = strategy.scope();
  const Table table = table_with(dynamic, tpu::Adagrad{.learning_rate = 0.1});
  tpu::TPUEmbedding embedding(FeatureConfig{.table = table}, {});
  for (uint64_t step = 0; step < 6; ++step) {
    const Tensors batch(twin_batches(step, 1)[0]);
    // Inference has no side effects.
    embedding.enqueue(distribute::PerReplica<Tensors>({batch}), {.training = false, .name = "i"});
    strategy.run([&] { embedding.dequeue("i"); });
    embedding.enqueue(distribute::PerReplica<Tensors>({batch}));
    strategy.run([&] {
      const Tensor found = embedding.dequeue().tensor();
      EXPECT_EQ(found.to_vector<float>(), activations[step]);
      embedding.apply_gradients(Gradient(gradient_factors(found.shape())));
    });
  }
  const DynamicTableState state = embedding.dynamic_table(table).state();
  EXPECT_EQ(state.rows.to_vector<float>(), rows);
  EXPECT_EQ(state.statistics.updates, 6);
  EXPECT_GT(state.statistics.inference_looked_up, 0);
  EXPECT_THROW(embedding.dynamic_table(table_with({})), ValueError);
}

TEST(DynamicTableTest, D087PartialAndServingObjects) {
  TPUStrategy strategy({.num_hosts = 1, .num_cores = 1});
  const auto scope = strategy.scope();
  const layers::PartialTPUEmbedding partial(
      {.feature_config = {{"f", FeatureConfig{.table = table_with({})}}},
       .optimizer = optimizers::SGD({.learning_rate = 0.1}),
       .size_threshold = 1000});
  strategy.run([&] { partial(Tensors({{"f", ids({3, 4})}})); });
  const auto engine = distribute::active_engine(strategy);
  ASSERT_NE(engine, nullptr);
  EXPECT_TRUE(engine->tables()[0].dynamic.has_value());
}

TEST(DynamicTableTest, D087TPUEmbeddingForServingTrainsAVariable) {
  const Table table = table_with({}, {});
  tpu::TPUEmbeddingForServing embedding(FeatureConfig{.table = table});
  embedding.build();
  GradientTape tape;
  const Tensor found = embedding(Tensors(ragged(IdRows{{3, 4}, {4}}))).tensor();
  EXPECT_THAT(found.to_vector<float>(), ElementsAre(7, 7, 4, 4));
  const std::vector<Variable> variables = {embedding.embedding_tables()[0].second};
  sgd()->apply_gradients(tape.gradient(ops::sum(found), variables), variables);
  const DynamicTableState state = embedding.dynamic_table(table).state();
  EXPECT_THAT(state.rows.to_vector<float>(), ElementsAre(2, 2, 2, 2));
}

// The loss is the sum of the squares of the activations, so its gradient is twice the activation.

TEST(DynamicTableTest, D090EntriesHoldTheWholeTable) {
  const FeatureConfig feature = {
      .table = table_with(
          {.admission = Admission::count(2), .not_admitted = NotAdmitted::default_row("ones")})};
  on_both(feature, [&](Job& job) {
    for (uint64_t step = 0; step < 4; ++step) job.train(twin_batches(step, 1));
    std::map<std::string, Tensor> saved;
    for (const StateEntry& entry : job.layer()->state_entries()) {
      saved[entry.name] = entry.get();
      EXPECT_EQ(saved[entry.name].spec(), entry.spec) << entry.name;
    }
    const DynamicTableState before = job.dynamic().state();
    for (uint64_t step = 4; step < 8; ++step) job.train(twin_batches(step, 1));
    for (const StateEntry& entry : job.layer()->state_entries()) entry.set(saved.at(entry.name));
    const DynamicTableState after = job.dynamic().state();
    EXPECT_EQ(after.keys.to_vector<int64_t>(), before.keys.to_vector<int64_t>());
    EXPECT_EQ(after.rows.to_vector<float>(), before.rows.to_vector<float>());
    EXPECT_EQ(after.fallback.to_vector<float>(), before.fallback.to_vector<float>());
    EXPECT_EQ(after.statistics, before.statistics);
    // Rows are in ascending order of key shards, whose first rows are saved.
    const auto shards = saved.at("items/shards").to_vector<int64_t>();
    ASSERT_EQ(shards.size(), 1025U);
    EXPECT_EQ(shards.back(), before.keys.size());
    EXPECT_TRUE(std::ranges::is_sorted(shards));
  });
}

}  // namespace keel::dynamic_table_test
