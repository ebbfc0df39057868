#include <keel/layers/metrics/confusion/internal/scored_examples.h>

#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>

#include "tests/distribute/fake_processes.h"

namespace keel::scored_examples_test {

TEST(ScoredExamplesTest, ProcessesGatherAllReplicasInOrder) {
  distribute::FakeJob job(2);
  const auto errors = job.run([](distribute::ProcessGroup& group) {
    distribute::TPUStrategy strategy({.num_hosts = 2, .num_cores = 2}, group);
    ReplicaExamples examples(strategy);
    const auto numbers = strategy.distribute_values_from_function([](int r) { return r; });
    strategy.run(
        [&](int r) {
          ScoredExamples& mine = examples.mine("test");
          for (int i = 0; i < r; ++i) {
            mine.scores.push_back(static_cast<float>(r));
            mine.weights.push_back(static_cast<float>(i));
            mine.groups.push_back(10 * r + i);
          }
        },
        numbers);
    const ScoredExamples all = examples.all();
    EXPECT_EQ(all.scores, (std::vector<float>{1, 2, 2, 3, 3, 3}));
    EXPECT_EQ(all.weights, (std::vector<float>{0, 0, 1, 0, 1, 2}));
    EXPECT_EQ(all.groups, (std::vector<int64_t>{10, 20, 21, 30, 31, 32}));
    examples.clear();
    EXPECT_TRUE(examples.all().scores.empty());
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", ""}));
}

}  // namespace keel::scored_examples_test
