// Tests of the memory and the cost of tables for unbounded ids, and of replicas that fail:
// distribute/embedding/internal/keyed_table_update.cc and row_updater.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/embedding/internal/keyed_table.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/kernels/update_rules/basic_update_rules.h>

#include "tests/support/errors.h"

namespace keel::distribute::keyed_limits_test {

using testing_support::message_of;

std::unique_ptr<KeyedTable> make_keyed(const DynamicVocabulary& dynamic) {
  auto out = KeyedTable::create({.name = "items", .dynamic = dynamic, .dim = 4});
  out->set_initial_rows({4, "zeros", "zeros", {.seed = 1, .purpose = 2}});
  return out;
}

FeatureBatch batch_of(int64_t first, int64_t n) {
  std::vector<int64_t> keys(n);
  for (int64_t i = 0; i < n; ++i) keys[i] = first + i;
  return {.ids = Tensor::from(keys, {n}), .row_splits = {}, .weights = {}};
}

// Looks up and updates without changing rows.
void admit(KeyedTable& table, int64_t first, int64_t n) {
  const FeatureBatch batch = batch_of(first, n);
  const auto lookup = table.look_up({&batch, 1}, true, table.updates());
  table.plan_update({&lookup, 1});
  table.commit_update();
  table.finish_update();
}

int64_t bytes_of(const KeyedTable& table) {
  const DynamicTableMemory memory = table.memory();
  return memory.rows + memory.index + memory.pending + memory.sketch;
}

TEST(KeyedLimitsTest, D110RowsDoNotMoveWhileTheTableGrows) {
  const auto table = make_keyed({});
  admit(*table, 0, 10);
  const float* const first = table->shard().row(table->first_key_row());
  for (int64_t known = 10; known < 100'000; known += 5'000) admit(*table, known, 5'000);
  EXPECT_EQ(table->shard().row(table->first_key_row()), first);
  EXPECT_EQ(table->statistics().size, 100'010);
}

TEST(KeyedLimitsTest, D111MemoryIsConstantAfterWarmUp) {
  const auto table = make_keyed({.capacity = 1'000,
                                 .admission = Admission::count(2, {.max_pending = 500}),
                                 .eviction = Eviction::lru()});
  int64_t known = 0;
  // Half of the keys occur twice in succession and are admitted.
  const auto stream = [&](int updates) {
    for (int i = 0; i < updates; ++i, known += 100) admit(*table, known, 200);
  };
  stream(60);
  EXPECT_EQ(table->statistics().evicted_capacity > 0, true);
  const int64_t warm = bytes_of(*table);
  stream(300);
  EXPECT_EQ(bytes_of(*table), warm);
  EXPECT_LE(table->statistics().size, 1'000);
  EXPECT_LE(table->statistics().pending, 500);
}

TEST(KeyedLimitsTest, D112MemoryDoesNotDependOnTheCapacity) {
  std::vector<int64_t> bytes;
  for (const int64_t capacity : {10'000, 100'000'000}) {
    const auto table = make_keyed({.capacity = capacity, .eviction = Eviction::lfu()});
    for (int64_t known = 0; known < 9'000; known += 1'000) admit(*table, known, 1'000);
    bytes.push_back(bytes_of(*table));
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

// A boundary that evicts reads all rows once, but for rare selections that must be repeated.
TEST(KeyedLimitsTest, D113EvictionIsAmortized) {
  constexpr double kHeadroom = 0.05;
  for (const Eviction& eviction : {Eviction::lru(), Eviction::lfu()}) {
    const auto table = make_keyed({.capacity = 4'000, .headroom = kHeadroom, .eviction = eviction});
    int64_t rows_read = 0, evicted = 0;
    table->on_evict([&](const EvictedRows& rows) {
      evicted += std::ssize(rows.counts);
      rows_read += table->statistics().size + std::ssize(rows.counts);
    });
    for (int64_t known = 0; known < 40'000; known += 50) admit(*table, known, 50);
    EXPECT_GT(evicted, 30'000);
    EXPECT_LE(static_cast<double>(rows_read), static_cast<double>(evicted) * (1 / kHeadroom + 1));
  }
}

// Most of the keys of a large eviction are cleaned later.
TEST(KeyedLimitsTest, NothingFindsTheKeysOfALargeEviction) {
  const auto table =
      make_keyed({.capacity = 8'000, .headroom = 0.5, .eviction = Eviction::lru({.ttl = 40})});
  const auto keys_of = [](int64_t first, int64_t n) { return batch_of(first, n).ids; };
  const auto count_held = [&](int64_t first, int64_t n) {
    int64_t held = 0;
    for (const char one : table->contains(keys_of(first, n))) held += one;
    return held;
  };
  for (int64_t known = 0; known < 9'000; known += 1'000) admit(*table, known, 1'000);
  // The ninth update exceeds the capacity; 4,000 of 9,000 rows remain.
  const auto expect_held = [&](int64_t first) {
    EXPECT_EQ(table->statistics().size, 9'000 - first);
    EXPECT_EQ(count_held(0, first), 0);
    EXPECT_EQ(count_held(first, 9'000 - first), 9'000 - first);
    EXPECT_EQ(table->keys().to_vector<int64_t>(),
              keys_of(first, 9'000 - first).to_vector<int64_t>());
    EXPECT_EQ(table->state().keys.to_vector<int64_t>().size(), 9'000U - first);
  };
  expect_held(5'000);
  const int64_t limit = table->row_limit();
  // Evicted keys come back, as new ones, while they are still stored; no row is added for them.
  admit(*table, 4'000, 1'000);
  expect_held(4'000);
  EXPECT_EQ(table->info(keys_of(4'500, 1)).born, 9);
  EXPECT_EQ(table->info(keys_of(5'500, 1)).born, 5);
  EXPECT_EQ(table->row_limit(), limit);
  table->erase(keys_of(3'000, 2'000));
  expect_held(5'000);
  // The rest expires, whether its positions have been used again or not.
  for (int i = 0; i < 50; ++i) admit(*table, 100'000, 10);
  EXPECT_EQ(table->statistics().size, 10);
  EXPECT_EQ(table->statistics().evicted_ttl, 4'000);
  EXPECT_EQ(table->row_limit(), limit);
}

TEST(KeyedLimitsTest, D114AReplicaThatFailsLeavesTheTableUnchanged) {
  TPUStrategy strategy({.num_hosts = 1, .num_cores = 3});
  EmbeddingEngine engine({.tables = {{.name = "items",
                                      .dim = 4,
                                      .combiner = Combiner::kSum,
                                      .update = {.rule = std::make_shared<SGDRule>()},
                                      .dynamic = DynamicVocabulary{}}},
                          .features = {{.table_id = 0}},
                          .num_hosts = 1,
                          .num_tensor_cores = 3});
  engine.keyed_table(0)->set_initial_rows({4, "ones", "zeros", {.seed = 1, .purpose = 2}});
  enum class Fails { kNever, kInLookup, kInUpdate };
  const auto step = [&](Fails fails) {
    strategy.run([&] {
      const int replica = current_replica_context()->replica;
      Communicator& communicator = strategy.communicator();
      if (fails == Fails::kInLookup && replica == 1) throw ValueError("replica 1 looks up nothing");
      const auto found = engine.lookup(communicator, {batch_of(replica, 2)});
      if (fails == Fails::kInUpdate && replica == 2) throw ValueError("replica 2 updates nothing");
      engine.apply(communicator, found.ticket, {Tensor::full<float>({2, 4}, 1)},
                   {{.learning_rate = 0.5}});
    });
  };
  step(Fails::kNever);
  const KeyedTable& table = *engine.keyed_table(0);
  const DynamicTableState before = table.state();
  EXPECT_EQ(message_of<ValueError>([&] { step(Fails::kInLookup); }), "replica 1 looks up nothing");
  engine.recover_from_failed_run();
  EXPECT_EQ(message_of<ValueError>([&] { step(Fails::kInUpdate); }), "replica 2 updates nothing");
  engine.recover_from_failed_run();
  const DynamicTableState after = table.state();
  EXPECT_EQ(after.keys.to_vector<int64_t>(), before.keys.to_vector<int64_t>());
  EXPECT_EQ(after.rows.to_vector<float>(), before.rows.to_vector<float>());
  EXPECT_EQ(after.count.to_vector<int64_t>(), before.count.to_vector<int64_t>());
  EXPECT_TRUE(after.statistics == before.statistics);
  step(Fails::kNever);
  EXPECT_EQ(table.updates(), 2);
}

// D-072: prefetching a batch does not hide later changes of the table.
TEST(KeyedLimitsTest, D072ALookupSeesChangesAfterItsPrefetch) {
  TPUStrategy strategy({.num_hosts = 1, .num_cores = 1});
  EmbeddingEngine engine({.tables = {{.name = "items",
                                      .dim = 1,
                                      .combiner = Combiner::kSum,
                                      .update = {.rule = std::make_shared<SGDRule>()},
                                      .dynamic = DynamicVocabulary{}}},
                          .features = {{.table_id = 0}}});
  KeyedTable& table = *engine.keyed_table(0);
  table.set_initial_rows({1, "ones", "zeros", {.seed = 1, .purpose = 2}});
  const Tensor keys = Tensor::from<int64_t>({0, 1}, {2});
  const auto assign = [&](float a, float b) {
    table.assign_rows(keys, Tensor::from<float>({a, b}, {2, 1}));
  };
  assign(5, 6);
  const DynamicTableState saved = table.state();
  const auto look_up_after = [&](const std::function<void()>& change) {
    const std::vector<FeatureBatch> features = {batch_of(0, 2)};
    strategy.run([&] { engine.prefetch(strategy.communicator(), features); });
    change();
    std::vector<float> out;
    strategy.run([&] {
      out = engine.lookup(strategy.communicator(), features).values[0].to_vector<float>();
    });
    return out;
  };
  EXPECT_EQ(look_up_after([&] { assign(7, 8); }), (std::vector<float>{7, 8}));
  EXPECT_EQ(look_up_after([&] { table.erase(Tensor::from<int64_t>({1}, {1})); }),
            (std::vector<float>{7, 1}));
  EXPECT_EQ(look_up_after([&] { table.restore(saved); }), (std::vector<float>{5, 6}));
  EXPECT_EQ(look_up_after([&] { table.prune({.max_rows = 0}); }), (std::vector<float>{1, 1}));
}

}  // namespace keel::distribute::keyed_limits_test
