#include <keel/framework/base/parallel.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>

#include "tests/support/errors.h"

namespace keel::parallel_test {

using testing_support::message_of;

// Restores the number of workers at the end of a test.
class ParallelTest : public testing::Test {
 protected:
  void TearDown() override { set_num_workers(before_); }

 private:
  const int before_ = num_workers();
};

using Blocks = std::set<std::pair<int64_t, int64_t>>;

Blocks blocks_of(int64_t n, int64_t grain) {
  Blocks blocks;
  std::mutex mutex;  // guards `blocks`
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(blocks.emplace(begin, end).second);
  });
  return blocks;
}

TEST_F(ParallelTest, BlocksAreCutByTheGrainAlone) {
  const Blocks expected = {{0, 4}, {4, 8}, {8, 10}};
  for (const int workers : {1, 2, 4}) {
    set_num_workers(workers);
    EXPECT_EQ(blocks_of(10, 4), expected);
    EXPECT_EQ(blocks_of(4, 4), (Blocks{{0, 4}}));
    EXPECT_EQ(blocks_of(3, 100), (Blocks{{0, 3}}));
    EXPECT_EQ(blocks_of(0, 4), Blocks());
  }
}

TEST_F(ParallelTest, OneTwoAndFourWorkersGiveTheSameBits) {
  std::vector<std::vector<double>> results;
  for (const int workers : {1, 2, 4}) {
    set_num_workers(workers);
    std::vector<double>& sums = results.emplace_back(250);
    parallel_for(1000 * 250, 1000, [&](int64_t begin, int64_t end) {
      double sum = 0;
      for (int64_t i = begin; i < end; ++i) sum += 1.0 / static_cast<double>(1 + i);
      sums[begin / 1000] = sum;
    });
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST_F(ParallelTest, TheExceptionOfTheLowestBlockReachesTheCaller) {
  for (const int workers : {1, 2, 4}) {
    set_num_workers(workers);
    std::atomic<int> finished = 0;
    EXPECT_EQ(message_of<std::out_of_range>([&] {
                parallel_for(64, 1, [&](int64_t begin, int64_t) {
                  if (begin == 17 || begin == 18 || begin == 60)
                    throw std::out_of_range(str(begin));
                  ++finished;
                });
              }),
              "17");
    EXPECT_EQ(finished, 61);
  }
}

TEST_F(ParallelTest, ALoopRunsAfterAnotherThrew) {
  set_num_workers(2);
  EXPECT_THROW(parallel_for(8, 1, [](int64_t, int64_t) { throw ValueError("no"); }), ValueError);
  EXPECT_EQ(blocks_of(8, 1).size(), 8U);
}

TEST_F(ParallelTest, NestedLoopsRunInPlace) {
  set_num_workers(4);
  std::vector<int> counts(40 * 40);
  parallel_for(40, 1, [&](int64_t row, int64_t) {
    const auto outer = std::this_thread::get_id();
    parallel_for(40, 3, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      for (int64_t column = begin; column < end; ++column) ++counts[row * 40 + column];
    });
  });
  EXPECT_EQ(counts, std::vector<int>(40 * 40, 1));
}

TEST_F(ParallelTest, ASerialSectionKeepsALoopOnItsThread) {
  set_num_workers(4);
  const SerialSection section;
  const auto caller = std::this_thread::get_id();
  int64_t expected = 0;
  parallel_for(100, 10, [&](int64_t begin, int64_t) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(begin, expected);
    expected += 10;
  });
  EXPECT_EQ(expected, 100);
}

TEST_F(ParallelTest, LoopsOfSeveralThreadsTakeTurns) {
  set_num_workers(3);
  std::vector<std::jthread> callers;
  std::atomic<int64_t> total = 0;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 50; ++repeat) {
        parallel_for(64, 4, [&](int64_t begin, int64_t end) { total += end - begin; });
      }
    });
  }
  callers.clear();
  EXPECT_EQ(total, 4 * 50 * 64);
}

TEST_F(ParallelTest, ReturnsTheNumberOfWorkersThatWasSet) {
  set_num_workers(3);
  EXPECT_EQ(num_workers(), 3);
  EXPECT_THROW(set_num_workers(0), ValueError);
  EXPECT_THROW(set_num_workers(1025), ValueError);
  EXPECT_EQ(num_workers(), 3);
}

}  // namespace keel::parallel_test
