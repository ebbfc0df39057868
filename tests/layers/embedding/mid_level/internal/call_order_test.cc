#include <keel/layers/embedding/mid_level/internal/call_order.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>

#include "tests/support/errors.h"

namespace keel::call_order_test {

using testing::HasSubstr;
using testing_support::message_of;

using Serials = std::vector<CallOrder::Serial>;
constexpr std::nullopt_t kUnnamed = std::nullopt;

TEST(CallOrderTest, BatchesAreDequeuedInOrder) {
  CallOrder order;
  EXPECT_EQ(order.enqueue(0, true, kUnnamed).batch, 0);
  EXPECT_EQ(order.enqueue(0, false, kUnnamed).batch, 1);
  const auto first = order.dequeue(1, kUnnamed);
  EXPECT_EQ(first.batch, 0);
  EXPECT_TRUE(first.training);
  const auto second = order.dequeue(2, kUnnamed);
  EXPECT_EQ(second.batch, 1);
  EXPECT_FALSE(second.training);
}

TEST(CallOrderTest, CallsWithoutABatchAreErrors) {
  CallOrder order;
  EXPECT_THROW(order.dequeue(1, kUnnamed), RuntimeError);
  EXPECT_THROW(order.apply_gradients(1, kUnnamed), RuntimeError);
  order.enqueue(1, true, kUnnamed);
  EXPECT_THROW(order.apply_gradients(1, kUnnamed), RuntimeError);
  EXPECT_THROW(order.dequeue(1, "a"), RuntimeError);
  order.dequeue(1, kUnnamed);
  EXPECT_THROW(order.dequeue(1, kUnnamed), RuntimeError);
  EXPECT_THROW(order.apply_gradients(1, "a"), RuntimeError);
  order.apply_gradients(1, kUnnamed);
  EXPECT_THROW(order.apply_gradients(1, kUnnamed), RuntimeError);
  EXPECT_EQ(order.in_flight(), 0);
}

TEST(CallOrderTest, AnErrorChangesNothing) {
  CallOrder order;
  order.enqueue(1, true, kUnnamed);
  order.dequeue(1, kUnnamed);
  EXPECT_THROW(order.dequeue(1, kUnnamed), RuntimeError);
  EXPECT_EQ(order.apply_gradients(1, kUnnamed).batch, 0);
}

TEST(CallOrderTest, ATrainingBatchWithoutUpdateIsDroppedByTheNextDequeue) {
  CallOrder order;
  order.enqueue(1, true, kUnnamed);
  order.dequeue(1, kUnnamed);
  order.enqueue(2, true, kUnnamed);
  EXPECT_EQ(order.in_flight(), 2);
  const auto taken = order.dequeue(2, kUnnamed);
  EXPECT_EQ(taken.dropped, (Serials{0}));
  EXPECT_TRUE(taken.unused_training);
  EXPECT_EQ(order.apply_gradients(2, kUnnamed).batch, 1);
}

TEST(CallOrderTest, AnUpdateMayFollowInALaterStep) {
  CallOrder order;
  order.enqueue(1, true, kUnnamed);
  order.dequeue(1, kUnnamed);
  EXPECT_EQ(order.apply_gradients(7, kUnnamed).batch, 0);
}

TEST(CallOrderTest, AnInferenceBatchIsDroppedSilentlyAndTakesNoUpdate) {
  CallOrder order;
  order.enqueue(1, false, kUnnamed);
  order.enqueue(1, false, kUnnamed);
  order.dequeue(1, kUnnamed);
  EXPECT_THAT(message_of<RuntimeError>([&] { order.apply_gradients(1, kUnnamed); }),
              HasSubstr("training = false"));
  const auto taken = order.dequeue(1, kUnnamed);
  EXPECT_EQ(taken.dropped, (Serials{0}));
  EXPECT_FALSE(taken.unused_training);
}

TEST(CallOrderTest, NamedBatchesAreSeparate) {
  CallOrder order;
  order.enqueue(1, true, "a");
  order.enqueue(1, true, kUnnamed);
  order.enqueue(1, true, "b");
  order.enqueue(1, true, "b");
  EXPECT_EQ(order.dequeue(1, "b").batch, 2);
  EXPECT_EQ(order.dequeue(1, kUnnamed).batch, 1);
  EXPECT_EQ(order.dequeue(1, "b").batch, 3);
  EXPECT_EQ(order.dequeue(1, "a").batch, 0);
  EXPECT_EQ(order.apply_gradients(1, "b").batch, 2);
  EXPECT_EQ(order.apply_gradients(1, "a").batch, 0);
  EXPECT_EQ(order.apply_gradients(1, "b").batch, 3);
  EXPECT_THROW(order.apply_gradients(1, kUnnamed), RuntimeError);
}

TEST(CallOrderTest, ANamedBatchIsForTrainingIfItIsUpdatedInItsStep) {
  CallOrder order;
  order.enqueue(1, false, "a");
  order.dequeue(1, "a");
  EXPECT_EQ(order.apply_gradients(1, "a").batch, 0);
}

TEST(CallOrderTest, ANamedBatchIsForgottenByTheNextStep) {
  for (int call = 0; call < 3; ++call) {
    CallOrder order;
    order.enqueue(1, true, "a");
    order.dequeue(1, "a");
    EXPECT_EQ(order.in_flight(), 1);
    order.enqueue(0, true, kUnnamed);  // outside steps
    EXPECT_EQ(order.in_flight(), 2);
    CallOrder::Taken taken;
    switch (call) {
      case 0:
        EXPECT_THROW(order.apply_gradients(2, "a"), RuntimeError);
        continue;
      case 1:
        taken = order.enqueue(2, true, kUnnamed);
        break;
      default:
        taken = order.dequeue(2, kUnnamed);
    }
    EXPECT_EQ(taken.dropped, (Serials{0}));
    EXPECT_FALSE(taken.unused_training);
  }
}

TEST(CallOrderTest, PendingNamedBatchesSurviveSteps) {
  CallOrder order;
  order.enqueue(1, true, "a");
  order.enqueue(2, true, "a");
  EXPECT_EQ(order.dequeue(3, "a").batch, 0);
  EXPECT_EQ(order.dequeue(4, "a").batch, 1);
}

TEST(CallOrderTest, ResetDropsAllBatches) {
  CallOrder order;
  order.enqueue(1, true, kUnnamed);
  order.dequeue(1, kUnnamed);
  order.enqueue(1, true, "a");
  order.clear();
  EXPECT_EQ(order.in_flight(), 0);
  EXPECT_THROW(order.dequeue(2, "a"), RuntimeError);
  EXPECT_THROW(order.apply_gradients(2, kUnnamed), RuntimeError);
  EXPECT_EQ(order.enqueue(2, true, kUnnamed).batch, 0);
}

// An independent model of the rules: the enqueued batches, and the batch that may be updated.
class Model {
 public:
  // Returns the batch, or -1 for an error.
  int64_t call(char c) {
    switch (c) {
      case 'T':
      case 'I':
        enqueued_.emplace_back(next_, c == 'T');
        return next_++;
      case 'D': {
        if (enqueued_.empty()) return -1;
        const auto [batch, training] = enqueued_.front();
        enqueued_.erase(enqueued_.begin());
        updatable_ = training ? batch : -1;
        return batch;
      }
      default:
        return std::exchange(updatable_, -1);
    }
  }

 private:
  std::vector<std::pair<int64_t, bool>> enqueued_;
  int64_t next_ = 0, updatable_ = -1;
};

int64_t make_call(CallOrder& order, CallOrder::StepNumber step, char c) {
  try {
    switch (c) {
      case 'T':
        return order.enqueue(step, true, kUnnamed).batch;
      case 'I':
        return order.enqueue(step, false, kUnnamed).batch;
      case 'D':
        return order.dequeue(step, kUnnamed).batch;
      default:
        return order.apply_gradients(step, kUnnamed).batch;
    }
  } catch (const RuntimeError&) {
    return -1;
  }
}

// Continues after errors, because an error changes nothing.
TEST(CallOrderTest, AllSequencesOfEightCallsFollowTheRules) {
  constexpr char kCalls[] = "TIDA";
  constexpr int kLength = 8;
  for (int sequence = 0; sequence < 1 << (2 * kLength); ++sequence) {
    CallOrder order;
    Model model;
    std::string calls;
    for (int i = 0; i < kLength; ++i) {
      const char c = kCalls[sequence >> (2 * i) & 3];
      calls += c;
      ASSERT_EQ(make_call(order, i / 3 + 1, c), model.call(c)) << calls;
    }
  }
}

// For every interleaving of two replicas, each depends on its own calls only.
TEST(CallOrderTest, InterleavingsOfTwoReplicasDoNotMatter) {
  constexpr char kCalls[] = "TIDA";
  constexpr int kEach = 3;
  for (int both = 0; both < 1 << (4 * kEach); ++both) {
    std::string calls[2];
    for (int i = 0; i < 2 * kEach; ++i) calls[i / kEach] += kCalls[both >> (2 * i) & 3];
    std::vector<int64_t> expected[2];
    for (int r = 0; r < 2; ++r) {
      Model model;
      for (char c : calls[r]) expected[r].push_back(model.call(c));
    }
    for (int order = 0; order < 1 << (2 * kEach); ++order) {
      if (__builtin_popcount(order) != kEach) continue;
      CallOrder replicas[2];
      size_t next[2] = {0, 0};
      for (int i = 0; i < 2 * kEach; ++i) {
        const int r = order >> i & 1;
        const size_t at = next[r]++;
        ASSERT_EQ(make_call(replicas[r], 1, calls[r][at]), expected[r][at]) << calls[r];
      }
    }
  }
}

}  // namespace keel::call_order_test
