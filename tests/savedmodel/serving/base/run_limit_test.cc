// Tests savedmodel/serving/base/run_limit.cc.
#include <keel/savedmodel/serving/base/run_limit.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace keel::serving::run_limit_test {

TEST(RunLimitTest, LimitsTheThreadsThatRun) {
  constexpr int kLimit = 2, kThreads = 6, kPieces = 200;
  RunLimit limit(kLimit);
  std::atomic<int> running = 0, most = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        limit.enter();
        for (int piece = 0; piece < kPieces; ++piece) {
          limit.rest_if_crowded();
          const int now = ++running;
          int before = most.load();
          while (before < now && !most.compare_exchange_weak(before, now)) {
          }
          std::this_thread::yield();
          --running;
        }
        limit.leave();
      });
    }
  }
  EXPECT_EQ(most, kLimit);
}

TEST(RunLimitTest, LetsAnotherThreadRunWhileOneWaits) {
  RunLimit limit(1);
  std::latch done(1);
  limit.enter();
  const std::jthread other([&] {
    limit.enter();
    done.count_down();
    limit.leave();
  });
  {
    const WaitingSection waiting;
    done.wait();  // hangs if the other thread may not run
  }
  limit.leave();
  const WaitingSection outside;  // of a thread that belongs to no pool
}

TEST(RunLimitTest, LetsAllThreadsEnd) {
  RunLimit limit(1);
  limit.enter();
  std::jthread other([&] { limit.enter(); });
  limit.close();
  other.join();
  limit.leave();
}

}  // namespace keel::serving::run_limit_test
