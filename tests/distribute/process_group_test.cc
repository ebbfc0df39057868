// Tests distribute/no_mpi_process_group.cc.
#include <keel/distribute/process_group.h>

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/internal/placement.h>
#include <keel/distribute/tpu/tpu_strategy.h>

#include "tests/distribute/collective_program.h"
#include "tests/distribute/fake_processes.h"

namespace keel::distribute::process_group_test {

using testing::HasSubstr;

void expect_no_errors(const std::vector<std::string>& errors) {
  for (size_t p = 0; p < errors.size(); ++p) EXPECT_EQ(errors[p], "") << "of process " << p;
}

TEST(ProcessGroupTest, AProgramWithoutALauncherIsASingleProcessJob) {
  EXPECT_EQ(processes().size(), 1);
  EXPECT_EQ(processes().rank(), 0);
  EXPECT_EQ(processes().exchange("nothing", std::vector<ProcessGroup::Parts>(1)).size(), 1U);
  EXPECT_THROW(processes().exchange("nothing", {}), ValueError);
}

TEST(ProcessGroupTest, HostsAreAssignedInContiguousRangesTheFirstOnesLarger) {
  FakeJob job(3);
  expect_no_errors(job.run([](ProcessGroup& group) {
    const Placement placement = place_hosts(4, 2, group);
    EXPECT_EQ(placement.first, (std::vector<int>{0, 4, 6, 8}));
    EXPECT_EQ(placement.process, group.rank());
    EXPECT_EQ(placement.local(), group.rank() == 0 ? 4 : 2);
    EXPECT_EQ(placement.process_of(0), 0);
    EXPECT_EQ(placement.process_of(3), 0);
    EXPECT_EQ(placement.process_of(4), 1);
    EXPECT_EQ(placement.process_of(7), 2);
  }));
}

TEST(ProcessGroupTest, FewerHostsThanProcessesAreAnErrorThatNamesBoth) {
  FakeJob job(3);
  for (const std::string& error :
       job.run([](ProcessGroup& group) { TPUStrategy({.num_hosts = 2}, group); })) {
    EXPECT_THAT(error, HasSubstr("2 hosts and 3 processes"));
  }
}

TEST(ProcessGroupTest, ReplicasAreNumberedOverAllProcesses) {
  FakeJob job(2);
  expect_no_errors(job.run([](ProcessGroup& group) {
    TPUStrategy strategy({.num_hosts = 3, .num_cores = 2}, group);
    EXPECT_EQ(strategy.num_hosts(), 3);
    EXPECT_EQ(strategy.num_replicas_in_sync(), 6);
    EXPECT_EQ(strategy.num_local_replicas(), group.rank() == 0 ? 4 : 2);
    EXPECT_EQ(strategy.first_local_replica(), group.rank() == 0 ? 0 : 4);
    const auto local = strategy.run([&] {
      const ReplicaContext& context = *current_replica_context();
      EXPECT_EQ(context.replica, context.local_replica + strategy.first_local_replica());
      EXPECT_EQ(context.replicas, 6);
      EXPECT_EQ(context.local_replicas, strategy.num_local_replicas());
      return context.replica;
    });
    EXPECT_EQ(local[1], strategy.first_local_replica() + 1);
    const auto made = strategy.distribute_values_from_function([](int r) { return 10 * r; });
    EXPECT_EQ(made[0], 10 * strategy.first_local_replica());
  }));
}

TEST(ProcessGroupTest, AnyNumberOfProcessesGivesTheBitsOfOne) {
  for (const TPUStrategyOptions& options : {TPUStrategyOptions{.num_hosts = 4, .num_cores = 1},
                                            {.num_hosts = 6, .num_cores = 1},
                                            {.num_hosts = 3, .num_cores = 2}}) {
    TPUStrategy alone(options);
    const std::vector<Bits> expected = run_collective_program(alone);
    for (int size = 2; size <= options.num_hosts; ++size) {
      FakeJob job(size);
      expect_no_errors(job.run([&](ProcessGroup& group) {
        TPUStrategy strategy(options, group);
        const std::vector<Bits> got = run_collective_program(strategy);
        for (size_t r = 0; r < got.size(); ++r) {
          EXPECT_TRUE(got[r] == expected[strategy.first_local_replica() + r])
              << "replica " << r << " of process " << group.rank() << " of " << size;
        }
      }));
    }
  }
}

TEST(ProcessGroupTest, DifferentStrategiesAreAnErrorInAllProcesses) {
  FakeJob job(2);
  const auto errors = job.run([](ProcessGroup& group) {
    TPUStrategy({.num_hosts = 2, .num_cores = 1 + group.rank()}, group);
  });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, HasSubstr("TPUStrategy of 2 hosts of"));
  }
}

// Runs `step` in the replicas of two processes. It must fail in both, with `text` in all errors.
void expect_failure(const std::function<void(Communicator&)>& step, const std::string& text) {
  FakeJob job(2);
  std::atomic<int> threw = 0;
  const auto errors = job.run([&](ProcessGroup& group) {
    TPUStrategy strategy({.num_hosts = 2, .num_cores = 2}, group);
    strategy.run([&] {
      try {
        step(strategy.communicator());
      } catch (const std::exception&) {
        ++threw;
        throw;
      }
    });
  });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, HasSubstr(text));
  }
  EXPECT_GE(threw, 1);
}

TEST(ProcessGroupTest, AReplicaThatThrowsStopsAllProcesses) {
  expect_failure(
      [](Communicator& communicator) {
        communicator.barrier();
        if (communicator.rank() == 3) throw ValueError("broken");
        communicator.barrier();
      },
      "broken");
}

TEST(ProcessGroupTest, AReplicaThatLeavesEarlyStopsAllProcesses) {
  expect_failure(
      [](Communicator& communicator) {
        if (communicator.rank() != 2) communicator.barrier("the others");
      },
      "the others");
}

TEST(ProcessGroupTest, AProcessWhoseReplicasAllLeaveEarlyStopsTheOthers) {
  expect_failure(
      [](Communicator& communicator) {
        if (communicator.rank() < 2) {
          communicator.barrier("the others");
        } else if (communicator.rank() == 17) {
          throw ValueError("never");
        }
      },
      "the end of Strategy::run");
}

TEST(ProcessGroupTest, DifferentCollectivesInTwoProcessesAreAnErrorThatNamesBoth) {
  const auto step = [](Communicator& communicator) {
    std::vector<Bytes> send(4);
    if (communicator.rank() < 2) {
      communicator.all_to_all(send, "ids");
    } else {
      communicator.all_to_all(send, "rows");
    }
  };
  expect_failure(step, "all_to_all 'ids'");
  expect_failure(step, "all_to_all 'rows'");
}

TEST(ProcessGroupTest, ArraysOfOtherSizesInAnotherProcessAreAnError) {
  expect_failure(
      [](Communicator& communicator) {
        const std::vector<float> mine(communicator.rank() < 2 ? 100 : 200);
        const std::span<const float> pieces[] = {mine};
        communicator.reduce_scatter(pieces, [](size_t, int64_t, std::span<const float>) {});
      },
      "same sizes");
}

TEST(ProcessGroupTest, CountsTheBytesSentByAProcess) {
  FakeJob job(2);
  expect_no_errors(job.run([](ProcessGroup& group) {
    TPUStrategy strategy({.num_hosts = 2, .num_cores = 2}, group);
    Communicator& communicator = strategy.communicator();
    strategy.run([&] {
      const std::vector<int64_t> message = {1, 2, 3};
      const std::vector<Bytes> send(4, as_bytes_of<int64_t>(message));
      communicator.all_to_all(send);
      communicator.barrier();
      const std::vector<float> mine(640);
      const std::span<const float> pieces[] = {mine};
      communicator.reduce_scatter(pieces, [](size_t, int64_t, std::span<const float>) {});
    });
    // Two replicas here send to two there; half of the elements, summed over the local replicas.
    EXPECT_EQ(communicator.traffic().all_to_all.bytes_sent, 4 * 24);
    EXPECT_EQ(communicator.traffic().reduce_scatter.bytes_sent, 320 * 4);
    EXPECT_EQ(communicator.traffic().reduce_scatter.messages, 1);
    EXPECT_EQ(communicator.traffic().all_gather_shards.bytes_sent, 0);
    const int mine = strategy.first_local_replica();
    EXPECT_EQ(communicator.traffic_of_rank(mine).all_to_all.bytes_sent, 3 * 24);
    EXPECT_THROW(communicator.traffic_of_rank(3 - mine), ValueError);
  }));
}

TEST(ProcessGroupTest, EveryProcessMustHaveABatchIfOthersDo) {
  FakeJob job(2);
  const auto errors = job.run([](ProcessGroup& group) {
    TPUStrategy strategy({.num_hosts = 2, .num_cores = 1}, group);
    const auto dataset = strategy.distribute_datasets_from_function(
        [](const InputContext& c) { return range_dataset(4 * c.input_pipeline_id).batch(2); });
    EXPECT_EQ(dataset.cardinality(), 2);
    dataset.iterator()();
  });
  EXPECT_THAT(errors[0], HasSubstr("rank 0 are empty"));
  EXPECT_EQ(errors[1], "");
}

}  // namespace keel::distribute::process_group_test
