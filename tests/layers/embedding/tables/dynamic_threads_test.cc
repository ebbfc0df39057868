// Tests tables with dynamic ids under threads: replicas that train, and, between steps, threads
// that look ids up, read the table and save it. ThreadSanitizer runs this test.
#include <algorithm>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/tables/dynamic_table.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/optimizers/adagrad.h>

#include "tests/layers/embedding/tables/dynamic_job.h"

namespace keel::dynamic_threads_test {

using dynamic_job::Job;
using dynamic_job::table_with;
using dynamic_job::twin_batches;

DynamicVocabulary usual() {
  return {.capacity = 25,
          .admission = Admission::count(2, {.max_pending = 20}),
          .eviction = Eviction::lru({.ttl = 6}),
          .not_admitted = NotAdmitted::default_row("ones")};
}

// Trains, and between the steps looks the ids up in several threads, which also read the table in
// other ways if `concurrent` is true.
DynamicTableState state_after(int cores, bool concurrent) {
  Job job(table_with(usual(), "adagrad"), cores);
  if (cores == Job::kVariable) job.use(optimizers::Adagrad({.learning_rate = 0.1}));
  const int replicas = std::max(cores, 1);
  for (uint64_t step = 0; step < 12; ++step) {
    job.train(twin_batches(step, replicas));
    const TensorLike batch = twin_batches(step + 100, 1)[0];
    const std::vector<float> expected = job.evaluate(batch);  // in all replicas
    if (cores != Job::kVariable) continue;
    if (!concurrent) {
      for (int i = 0; i < 3; ++i) job.evaluate(batch);
      continue;
    }
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] { EXPECT_EQ(job.evaluate(batch), expected); });
    }
    threads.emplace_back([&] {
      const DynamicTable table = job.dynamic();
      EXPECT_EQ(table.statistics().updates, static_cast<int64_t>(step) + 1);
      const Tensor keys = table.keys();
      EXPECT_EQ(table.rows(keys).dim(0), keys.size());
      EXPECT_EQ(table.size(), keys.size());
    });
    threads.emplace_back([&] {
      for (const StateEntry& entry : job.layer()->state_entries()) entry.get();
    });
  }
  return job.dynamic().state();
}

TEST(DynamicThreadsTest, D115ThreadsReadATableBetweenStepsOfReplicas) {
  for (const int cores : {Job::kVariable, 1, 4}) {
    SCOPED_TRACE(cores);
    const DynamicTableState expected = state_after(cores, false), found = state_after(cores, true);
    EXPECT_EQ(found.keys.to_vector<int64_t>(), expected.keys.to_vector<int64_t>());
    EXPECT_EQ(found.rows.to_vector<float>(), expected.rows.to_vector<float>());
    EXPECT_EQ(found.statistics, expected.statistics);
  }
}

}  // namespace keel::dynamic_threads_test
