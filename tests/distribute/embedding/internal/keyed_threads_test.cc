// Tests that threads may read a KeyedTable at the same time (keyed_table.h). ThreadSanitizer runs
// this test.
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include <keel/distribute/embedding/internal/keyed_table.h>

namespace keel::distribute::keyed_threads_test {

using Lookups = std::vector<std::shared_ptr<KeyedLookup>>;

constexpr int kReplicas = 2;

std::unique_ptr<KeyedTable> make_keyed() {
  auto out = KeyedTable::create(
      {.name = "items",
       .dynamic = {.capacity = 60,
                   .admission = Admission::count(2, {.window = 9, .max_pending = 40}),
                   .eviction = Eviction::lfu({.ttl = 7, .halve_every = 5}),
                   .not_admitted = NotAdmitted::hashed(3)},
       .dim = 4,
       .slots = {{.name = "sum", .initial = 0.5F}}});
  out->set_initial_rows({4,
                         initializers::random_uniform(-1, 1),
                         initializers::constant(0.5),
                         {.seed = 5, .purpose = 9}});
  return out;
}

FeatureBatch batch_of(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> ids(50);
  for (int64_t& id : ids) id = static_cast<int64_t>(random() % 150) - 30;
  return {.ids = Tensor::from(ids, {std::ssize(ids)}), .row_splits = {}, .weights = {}};
}

std::shared_ptr<KeyedLookup> look_up(const KeyedTable& table, uint64_t seed, bool training) {
  const FeatureBatch batch = batch_of(seed);
  return table.look_up({&batch, 1}, training, table.updates());
}

void update(KeyedTable& table, const Lookups& lookups) {
  table.plan_update(lookups);
  table.commit_update();
  for (const auto& lookup : lookups) {
    table.resolve(*lookup);
    for (const int64_t row : lookup->features[0].ids.data<int64_t>()) {
      if (row == 0) continue;
      std::vector<float> values(4);
      table.shard().read(0, row, values.data());
      for (float& value : values) value += 0.25F;
      table.shard().write(0, row, values.data());
    }
  }
  table.finish_update();
}

// What a checkpoint reads.
int64_t read_as_checkpoints(const KeyedTable& table) {
  int64_t out = table.saved_ranges().first.total + table.shard_starts().size();
  for (const SavedIds of : {SavedIds::kRows, SavedIds::kPending}) {
    const std::vector<uint32_t> order = table.saved_order(of);
    out += table.keys_at(of, order).size() + table.uses_at(of, SavedUse::kLast, order).size();
    if (of == SavedIds::kRows)
      out += table.rows_at(0, order).size() + table.rows_at(1, order).size();
  }
  return out + table.fallback_rows(0).size();
}

// Runs steps whose lookups are made by one thread after the other, or by threads beside others that
// read the table in every other way.
DynamicTableState state_after(int steps, bool concurrent) {
  const std::unique_ptr<KeyedTable> table = make_keyed();
  for (int step = 0; step < steps; ++step) {
    Lookups lookups(kReplicas);
    const auto look_up_for = [&](int replica) {
      lookups[replica] = look_up(*table, 10 * step + replica, true);
    };
    const auto evaluate = [&] { look_up(*table, 1000 + step, false); };
    if (concurrent) {
      std::vector<std::jthread> threads;
      for (int replica = 0; replica < kReplicas; ++replica) {
        threads.emplace_back([&, replica] { look_up_for(replica); });
      }
      threads.emplace_back(evaluate);
      threads.emplace_back(evaluate);
      threads.emplace_back([&] {
        const DynamicTableStatistics statistics = table->statistics();
        EXPECT_EQ(statistics.updates, step);
        EXPECT_LE(statistics.size, 60);
        EXPECT_GT(table->memory().rows, 0);
      });
      threads.emplace_back([&] {
        const Tensor keys = table->keys();
        EXPECT_EQ(table->contains(keys), std::vector<char>(keys.size(), 1));
        EXPECT_EQ(table->read(0, keys).dim(0), keys.size());
        EXPECT_EQ(table->state().keys.to_vector<int64_t>(), keys.to_vector<int64_t>());
        table->info(Tensor::from<int64_t>({3}, {1}));
      });
      threads.emplace_back([&] { EXPECT_GT(read_as_checkpoints(*table), 0); });
    } else {
      for (int replica = 0; replica < kReplicas; ++replica) look_up_for(replica);
      evaluate();
      evaluate();
    }
    update(*table, lookups);
  }
  return table->state();
}

TEST(KeyedThreadsTest, D115ReadersMayRunAtTheSameTime) {
  const DynamicTableState expected = state_after(40, false), found = state_after(40, true);
  EXPECT_GT(expected.statistics.evicted_ttl + expected.statistics.evicted_capacity, 0);
  EXPECT_EQ(found.keys.to_vector<int64_t>(), expected.keys.to_vector<int64_t>());
  EXPECT_EQ(found.rows.to_vector<float>(), expected.rows.to_vector<float>());
  EXPECT_EQ(found.fallback.to_vector<float>(), expected.fallback.to_vector<float>());
  EXPECT_EQ(found.pending_count.to_vector<int64_t>(), expected.pending_count.to_vector<int64_t>());
  EXPECT_EQ(found.statistics, expected.statistics);
}

}  // namespace keel::distribute::keyed_threads_test
