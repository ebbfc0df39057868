// Tests autodiff/replica_context.cc, distribute/communicator.cc, internal/placement.cc,
// replica_scheduler.cc, thread_communicator.cc, thread_communicator_sums.cc and
// distribute/tpu/tpu_strategy.cc.
#include <keel/distribute/strategy.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <sched.h>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>

#include "tests/support/errors.h"

namespace keel::distribute::strategy_test {

using testing::HasSubstr;
using testing_support::message_of;

// Restores the number of workers when a test ends.
class Workers {
 public:
  explicit Workers(int workers) : previous_(num_workers()) { set_num_workers(workers); }
  ~Workers() { set_num_workers(previous_); }

 private:
  const int previous_;
};

Tensor replica_number() {
  return Tensor::scalar<float>(static_cast<float>(current_replica_context()->replica));
}

TEST(StrategyTest, DefaultIsACpuStrategyOfOneReplica) {
  EXPECT_EQ(Strategy::current().name(), "CPUStrategy");
  EXPECT_EQ(Strategy::current().num_replicas_in_sync(), 1);
  EXPECT_FALSE(Strategy::current().is_tpu());
}

TEST(StrategyTest, ScopeMakesAStrategyCurrentAndEndsWithTheObject) {
  TPUStrategy strategy({.num_cores = 2});
  {
    const auto scope = strategy.scope();
    EXPECT_EQ(&Strategy::current(), &strategy);
  }
  EXPECT_NE(&Strategy::current(), &strategy);
}

TEST(StrategyTest, ScopesThatEndOutOfOrderAreAnErrorOfTheNextUse) {
  TPUStrategy outer({.num_cores = 2}), inner({.num_cores = 3});
  auto first = std::make_unique<Strategy::Scope>(outer);
  auto second = std::make_unique<Strategy::Scope>(inner);
  first.reset();
  EXPECT_THAT(message_of<RuntimeError>([&] { Strategy::current(); }),
              HasSubstr("end scopes in reverse order"));
  // The scope that has not ended stays active.
  EXPECT_EQ(&Strategy::current(), &inner);
  const Variable averages(Tensor::scalar(1.0F),
                          {.synchronization = VariableSynchronization::kOnRead,
                           .aggregation = VariableAggregation::kSum});
  EXPECT_EQ(averages.read().item<float>(), 3);  // the mean over three replicas
  second.reset();
  EXPECT_EQ(Strategy::current().name(), "CPUStrategy");
}

TEST(StrategyTest, AScopeThatEndsOnAnotherThreadIsAnErrorOfTheNextUse) {
  TPUStrategy strategy({.num_cores = 2});
  auto scope = std::make_unique<Strategy::Scope>(strategy);
  std::thread([&] { scope.reset(); }).join();
  EXPECT_THROW(Strategy::current(), RuntimeError);
  EXPECT_EQ(Strategy::current().name(), "CPUStrategy");
}

TEST(StrategyTest, RunsTheFunctionOnceInEachReplica) {
  TPUStrategy strategy({.num_hosts = 2, .num_cores = 3});
  ASSERT_EQ(strategy.num_replicas_in_sync(), 6);
  const auto values = strategy.run([] { return current_replica_context()->replica; });
  std::vector<int> expected(6);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(values.values(), expected);
}

TEST(StrategyTest, PassesEachReplicaItsOwnArguments) {
  TPUStrategy strategy({.num_cores = 3});
  const auto doubled = strategy.run([](int x) { return 2 * x; }, PerReplica<int>({1, 2, 3}));
  EXPECT_EQ(doubled.values(), (std::vector<int>{2, 4, 6}));
}

TEST(StrategyTest, ReducesBySumAndMean) {
  TPUStrategy strategy({.num_cores = 4});
  const auto values = strategy.run(replica_number);
  EXPECT_EQ(strategy.reduce(ReduceOp::kSum, values).item<float>(), 6);
  EXPECT_EQ(strategy.reduce(ReduceOp::kMean, values).item<float>(), 1.5F);
}

TEST(StrategyTest, ReplicasOnFewerWorkersReachCollectives) {
  for (int workers : {1, 2, 4}) {
    const Workers w(workers);
    TPUStrategy strategy({.num_cores = 8});
    const auto sums = strategy.run([&] {
      float value = replica_number().item<float>();
      for (int i = 0; i < 50; ++i) {
        std::vector<float> v = {value};
        all_reduce_sum(strategy.communicator(), v);
        value = v[0] / 8;
      }
      return value;
    });
    for (float sum : sums.values()) EXPECT_EQ(sum, 3.5F);
  }
}

TEST(StrategyTest, NoMoreReplicasComputeAtOnceThanThereAreWorkers) {
  const Workers w(2);
  TPUStrategy strategy({.num_cores = 6});
  std::atomic<int> now = 0;
  std::atomic<int> most = 0;
  strategy.run([&] {
    for (int i = 0; i < 20; ++i) {
      const int running = ++now;
      int seen = most;
      while (seen < running && !most.compare_exchange_weak(seen, running)) {
      }
      std::this_thread::yield();
      --now;
      strategy.communicator().barrier();
    }
  });
  EXPECT_LE(most, 2);
}

// Returns the processors that this thread may run on.
std::vector<int> my_processors() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  std::vector<int> out;
  for (int p = 0; p < CPU_SETSIZE; ++p) {
    if (CPU_ISSET(p, &set)) out.push_back(p);
  }
  return out;
}

TEST(StrategyTest, ReplicasMayUseAllProcessorsOfTheProgram) {
  const std::vector<int> all = my_processors();
  for (const int workers : {1, 2, 4}) {
    const Workers w(workers);
    TPUStrategy strategy({.num_cores = 5});
    for (int run = 0; run < 20; ++run) {
      strategy.run([&] {
        strategy.communicator().barrier();
        EXPECT_EQ(my_processors(), all);
      });
    }
  }
}

TEST(StrategyTest, AThrowingReplicaStopsTheOthersAndItsErrorIsRethrown) {
  TPUStrategy strategy({.num_cores = 4});
  for (int thrower = 0; thrower < 4; ++thrower) {
    const auto step = [&] {
      if (current_replica_context()->replica == thrower) throw ValueError("broken at ", thrower);
      strategy.communicator().barrier();
      strategy.communicator().barrier();
    };
    EXPECT_EQ(message_of<ValueError>([&] { strategy.run(step); }), str("broken at ", thrower));
    EXPECT_EQ(strategy.run(replica_number).size(), 4) << "usable afterwards";
  }
}

TEST(StrategyTest, TheLowestReplicasErrorWins) {
  TPUStrategy strategy({.num_cores = 3});
  EXPECT_EQ(message_of<ValueError>([&] {
              strategy.run([] { throw ValueError("from ", current_replica_context()->replica); });
            }),
            "from 0");
}

TEST(StrategyTest, AReplicaThatReturnsEarlyIsAnErrorInsteadOfADeadlock) {
  TPUStrategy strategy({.num_cores = 3});
  EXPECT_THROW(strategy.run([&] {
    if (current_replica_context()->replica != 1) strategy.communicator().barrier();
  }),
               RuntimeError);
  EXPECT_EQ(strategy.run(replica_number).size(), 3);
}

TEST(StrategyTest, DifferentCollectivesAtOnceAreAnError) {
  TPUStrategy strategy({.num_cores = 2});
  EXPECT_THAT(message_of<RuntimeError>([&] {
                strategy.run([&] {
                  std::vector<float> v = {1};
                  if (current_replica_context()->replica == 0) {
                    strategy.communicator().barrier();
                  } else {
                    all_reduce_sum(strategy.communicator(), v);
                  }
                });
              }),
              HasSubstr("barrier"));
}

TEST(StrategyTest, CollectivesOutsideReplicasAreAnError) {
  TPUStrategy strategy({.num_cores = 2});
  EXPECT_THROW(strategy.communicator().barrier(), RuntimeError);
}

TEST(StrategyTest, RunInsideAReplicaIsAnError) {
  TPUStrategy strategy({.num_cores = 2});
  EXPECT_THROW(strategy.run([&] { strategy.run([] { return 0; }); }), RuntimeError);
}

TEST(StrategyTest, ArgumentsForAnotherNumberOfReplicasAreAnError) {
  TPUStrategy strategy({.num_cores = 2});
  EXPECT_THROW(strategy.run([](int) {}, PerReplica<int>({1, 2, 3})), RuntimeError);
  EXPECT_THROW(strategy.reduce(ReduceOp::kSum, PerReplica<Tensor>({Tensor::scalar(1.0F)})),
               RuntimeError);
}

TEST(StrategyTest, RejectsInvalidSizesAndNames) {
  EXPECT_THROW(TPUStrategy({.num_cores = 0}), ValueError);
  EXPECT_THROW(TPUStrategy({.num_hosts = -1, .num_cores = 2}), ValueError);
  EXPECT_THROW(TPUStrategy({.num_hosts = 100, .num_cores = 100}), ValueError);
  EXPECT_THROW(make_strategy("gpu"), ValueError);
  EXPECT_EQ(make_strategy("tpu", {.num_cores = 5})->num_replicas_in_sync(), 5);
}

TEST(StrategyTest, OnReadVariablesHoldAValuePerReplicaAndCombineOutside) {
  TPUStrategy strategy({.num_cores = 4});
  const auto scope = strategy.scope();
  const Variable count(Tensor::scalar<double>(0),
                       {.name = "count",
                        .trainable = false,
                        .synchronization = VariableSynchronization::kOnRead,
                        .aggregation = VariableAggregation::kSum});
  strategy.run(
      [&] { count.assign_add(Tensor::scalar<double>(current_replica_context()->replica + 1)); });
  EXPECT_EQ(count.read().item<double>(), 10);
}

TEST(StrategyTest, ReplicasMayNotAssignASharedVariable) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Variable shared(Tensor::scalar<float>(0), {.name = "shared"});
  EXPECT_THROW(strategy.run([&] { shared.assign(Tensor::scalar<float>(1)); }), RuntimeError);
}

TEST(CommunicatorTest, ReduceScatterConsumesEveryElementOnceWithTheTreeSum) {
  for (int replicas : {1, 2, 3, 5, 8}) {
    TPUStrategy strategy({.num_cores = replicas});
    std::vector<float> totals(5003 + 7);
    strategy.run([&] {
      const auto me = static_cast<float>(current_replica_context()->replica);
      std::vector<float> a(5003, me + 1);
      std::vector<float> b(7, 10 * me);
      const std::span<const float> pieces[] = {a, b};
      strategy.communicator().reduce_scatter(
          pieces, [&](size_t piece, int64_t begin, std::span<const float> part) {
            float* total = totals.data() + (piece == 0 ? 0 : 5003) + begin;
            for (const float x : part) *total++ += x;
          });
    });
    const float n = static_cast<float>(replicas);
    for (int i = 0; i < 5003; ++i) ASSERT_EQ(totals[i], n * (n + 1) / 2) << replicas;
    for (int i = 5003; i < 5010; ++i) ASSERT_EQ(totals[i], 10 * n * (n - 1) / 2) << replicas;
  }
}

TEST(CommunicatorTest, AllToAllDeliversTheMessagesOfAllRanks) {
  TPUStrategy strategy({.num_cores = 3});
  const auto received = strategy.run([&] {
    const int me = current_replica_context()->replica;
    std::vector<std::vector<int64_t>> out;
    for (int to = 0; to < 3; ++to) out.push_back(std::vector<int64_t>(to, 10 * me + to));
    std::vector<Bytes> send;
    for (const auto& message : out) send.push_back(as_bytes_of<int64_t>(message));
    std::vector<int64_t> all;
    for (const Bytes& bytes : strategy.communicator().all_to_all(send)) {
      for (int64_t x : as_elements<int64_t>(bytes)) all.push_back(x);
    }
    strategy.communicator().barrier();
    return all;
  });
  EXPECT_EQ(received[0], (std::vector<int64_t>{}));
  EXPECT_EQ(received[1], (std::vector<int64_t>{1, 11, 21}));
  EXPECT_EQ(received[2], (std::vector<int64_t>{2, 2, 12, 12, 22, 22}));
}

TEST(CommunicatorTest, DifferentLabelsOfOneCollectiveAreAnErrorThatNamesBoth) {
  TPUStrategy strategy({.num_cores = 2});
  const std::string text = message_of<RuntimeError>([&] {
    strategy.run([&] {
      const bool first = current_replica_context()->replica == 0;
      const std::vector<Bytes> send(2);
      strategy.communicator().all_to_all(send, first ? "ids" : "rows");
    });
  });
  EXPECT_THAT(text, HasSubstr("all_to_all 'ids'"));
  EXPECT_THAT(text, HasSubstr("all_to_all 'rows'"));
}

TEST(CommunicatorTest, CountsTheBytesThatEachRankSends) {
  TPUStrategy strategy({.num_cores = 4});
  Communicator& communicator = strategy.communicator();
  const auto step = [&] {
    const std::vector<int64_t> message(10);
    std::vector<Bytes> send(4, as_bytes_of<int64_t>(message));
    send[1] = {};
    communicator.all_to_all(send);
    std::vector<float> values(1600);
    const std::span<const float> pieces[] = {values};
    communicator.reduce_scatter(pieces, [](size_t, int64_t, std::span<const float>) {});
    static std::vector<float> shared(1600);
    const std::span<float> parts[] = {shared};
    communicator.all_gather_shards(parts);
  };
  strategy.run(step);
  const TrafficByKind first = communicator.traffic_of_rank(0);
  EXPECT_EQ(first.all_to_all.bytes_sent, 2 * 80);
  EXPECT_EQ(first.all_to_all.messages, 2);
  EXPECT_EQ(communicator.traffic_of_rank(1).all_to_all.bytes_sent, 3 * 80);
  EXPECT_EQ(first.reduce_scatter.bytes_sent, 3 * 400 * 4);
  EXPECT_EQ(first.reduce_scatter.messages, 3);
  EXPECT_EQ(first.all_gather_shards.bytes_sent, 3 * 400 * 4);
  EXPECT_EQ(communicator.traffic().all_to_all.bytes_sent, 0) << "nothing left this process";
  communicator.reset_traffic();
  EXPECT_EQ(communicator.traffic_of_rank(0).all_gather_shards.messages, 0);
}

TEST(StrategyTest, ThreadsThatRunOneStrategyTakeTurns) {
  TPUStrategy strategy({.num_cores = 3});
  std::atomic<int> wrong = 0;
  const auto work = [&] {
    for (int i = 0; i < 20; ++i) {
      const auto values = strategy.run([&] {
        std::vector<float> v = {1};
        all_reduce_sum(strategy.communicator(), v);
        return v[0];
      });
      for (float v : values.values()) wrong += v == 3 ? 0 : 1;
    }
  };
  std::jthread other(work);
  work();
  other.join();
  EXPECT_EQ(wrong, 0);
}

TEST(StrategyTest, LifetimeEndsWithTheStrategy) {
  std::weak_ptr<const void> lifetime;
  {
    TPUStrategy strategy({.num_cores = 1});
    lifetime = strategy.lifetime();
    EXPECT_FALSE(lifetime.expired());
  }
  EXPECT_TRUE(lifetime.expired());
}

TEST(CommunicatorTest, AnErrorWhileConsumingReachesTheCallerAfterAllHaveSummed) {
  TPUStrategy strategy({.num_cores = 4});
  for (int repeat = 0; repeat < 20; ++repeat) {
    EXPECT_THROW(strategy.run([&] {
      const int me = current_replica_context()->replica;
      const std::vector<float> mine(100'000, 1);
      const std::span<const float> pieces[] = {mine};
      strategy.communicator().reduce_scatter(pieces, [&](size_t, int64_t, std::span<const float>) {
        if (me == 0) throw ValueError("no");
      });
    }),
                 ValueError);
  }
}

TEST(CommunicatorTest, AllToAllDeliversSeveralMessagesToEach) {
  TPUStrategy strategy({.num_cores = 3});
  strategy.run([&] {
    const int me = current_replica_context()->replica;
    for (int64_t step = 0; step < 50; ++step) {
      std::vector<int64_t> numbers;
      for (int to = 0; to < 3; ++to) {
        for (int k = 0; k < 2; ++k) numbers.push_back(1000 * step + 100 * me + 10 * to + k);
      }
      std::vector<Bytes> send;
      for (const int64_t& n : numbers) send.push_back(as_bytes_of<int64_t>({&n, 1}));
      const std::vector<Bytes> received = strategy.communicator().all_to_all(send);
      send.clear();
      ASSERT_EQ(received.size(), 6U);
      for (int from = 0; from < 3; ++from) {
        for (int k = 0; k < 2; ++k) {
          EXPECT_EQ(as_elements<int64_t>(received[2 * from + k])[0],
                    1000 * step + 100 * from + 10 * me + k);
        }
      }
      strategy.communicator().barrier();
    }
  });
  const std::vector<Bytes> send(4);
  EXPECT_THROW(strategy.run([&] { strategy.communicator().all_to_all(send); }), ValueError);
}

TEST(CommunicatorTest, AllGatherDoesNotChangeItsArguments) {
  for (const int replicas : {1, 2, 5}) {
    TPUStrategy strategy({.num_cores = replicas});
    int64_t sum = 0;  // sum of the values that one replica received for all, over the steps
    strategy.run([&] {
      const int me = current_replica_context()->replica;
      for (int64_t step = 0; step < 50; ++step) {
        int64_t mine = 100 * step + me;
        const std::vector<Bytes> all = strategy.communicator().all_gather(
            as_bytes_of<int64_t>({&mine, 1}), "numbers", [&](std::span<const Bytes> messages) {
              for (const Bytes m : messages) sum += as_elements<int64_t>(m)[0];
            });
        if (strategy.communicator().size() > 1) mine = -1;
        ASSERT_EQ(std::ssize(all), strategy.communicator().size());
        for (int64_t r = 0; r < std::ssize(all); ++r) {
          EXPECT_EQ(as_elements<int64_t>(all[r])[0], 100 * step + r);
        }
      }
    });
    EXPECT_EQ(sum, replicas * 100 * (50 * 49 / 2) + 50 * replicas * (replicas - 1) / 2);
  }
}

TEST(CommunicatorTest, TheLastReplicaActsForAllBeforeAnyContinues) {
  TPUStrategy strategy({.num_cores = 4});
  int done = 0;
  strategy.run([&] {
    const std::vector<float> ones(100, 1);
    const std::span<const float> pieces[] = {ones};
    for (int step = 0; step < 50; ++step) {
      strategy.communicator().local_barrier("work", [&] { ++done; });
      EXPECT_EQ(done, 2 * step + 1);
      strategy.communicator().reduce_scatter(
          pieces, [](size_t, int64_t, std::span<const float>) {}, [&] { ++done; });
      EXPECT_EQ(done, 2 * step + 2);
    }
  });
  EXPECT_EQ(done, 100);
}

TEST(CommunicatorTest, AnErrorOfTheActingReplicaStopsTheOthers) {
  TPUStrategy strategy({.num_cores = 4});
  for (int repeat = 0; repeat < 20; ++repeat) {
    EXPECT_THROW(strategy.run([&] {
      strategy.communicator().local_barrier("work", [] { throw ValueError("no"); });
    }),
                 ValueError);
  }
  const std::vector<float> ones(100, 1);
  bool acted = false;
  EXPECT_THROW(strategy.run([&] {
    const std::span<const float> pieces[] = {ones};
    strategy.communicator().reduce_scatter(
        pieces, [](size_t, int64_t, std::span<const float>) { throw TypeError("no"); },
        [&] { acted = true; });
  }),
               TypeError);
  EXPECT_FALSE(acted);
}

TEST(CommunicatorTest, WaitsForAllThatHaveNotArrived) {
  for (const int workers : {1, 4}) {
    const int before = num_workers();
    set_num_workers(workers);
    TPUStrategy strategy({.num_cores = 4});
    set_num_workers(before);
    std::vector<int> written(4);
    strategy.run([&] {
      const int me = current_replica_context()->replica;
      for (int step = 1; step <= 50; ++step) {
        written[me] = step;
        strategy.communicator().arrive();
        strategy.communicator().wait_for_arrivals();
        for (const int w : written) EXPECT_EQ(w, step);
        strategy.communicator().barrier();
      }
    });
    // Replicas that have left or failed are not waited for.
    strategy.run([&] {
      if (current_replica_context()->replica == 2) return;
      strategy.communicator().arrive();
      strategy.communicator().wait_for_arrivals();
    });
    EXPECT_THROW(strategy.run([&] {
      if (current_replica_context()->replica == 2) throw ValueError("no");
      strategy.communicator().arrive();
      strategy.communicator().wait_for_arrivals();
    }),
                 ValueError);
  }
}

}  // namespace keel::distribute::strategy_test
