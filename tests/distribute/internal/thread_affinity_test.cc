#include <keel/distribute/internal/thread_affinity.h>

#include <gtest/gtest.h>

namespace keel::distribute::thread_affinity_test {

TEST(ThreadAffinityTest, RecordsTheProcessorAtEachUpdate) {
  ThreadAffinity affinity;
  EXPECT_EQ(affinity.processor(), ThreadAffinity::kNowhere);
  affinity.update();
  EXPECT_NE(affinity.processor(), ThreadAffinity::kNowhere);
}

TEST(ThreadAffinityTest, NarrowsToTheFirstSuitableProcessorUntilTheNextUpdate) {
  const int all = ThreadAffinity::allowed();
  if (all == 0) GTEST_SKIP() << "this system does not tell the processors of a thread";
  ThreadAffinity affinity;
  affinity.update();
  int chosen = ThreadAffinity::kNowhere;
  affinity.wake_on([&](int processor) {
    chosen = processor;
    return true;
  });
  EXPECT_EQ(affinity.processor(), chosen);
  EXPECT_EQ(ThreadAffinity::allowed(), 1);
  EXPECT_EQ(ThreadAffinity::current(), chosen);
  affinity.update();
  EXPECT_EQ(ThreadAffinity::allowed(), all);
}

TEST(ThreadAffinityTest, KeepsItsProcessorsIfNoneIsSuitable) {
  const int all = ThreadAffinity::allowed();
  if (all == 0) GTEST_SKIP() << "this system does not tell the processors of a thread";
  ThreadAffinity affinity;
  affinity.update();
  affinity.wake_on([](int) { return false; });
  EXPECT_EQ(ThreadAffinity::allowed(), all);
}

}  // namespace keel::distribute::thread_affinity_test
