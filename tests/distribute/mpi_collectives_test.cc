// Started by mpirun with several numbers of processes; see tests/CMakeLists.txt.
// Tests distribute/mpi_process_group.cc, internal/messages.cc and gather_tensors.cc.
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/distribute/internal/gather_tensors.h>
#include <keel/distribute/tpu/tpu_strategy.h>

#include "tests/distribute/collective_program.h"
#include "tests/support/errors.h"

namespace keel::distribute::mpi_collectives_test {

using testing::HasSubstr;
using testing_support::message_of;

// Compares the program's results in this process alone and in all processes of the job.
void expect_the_bits_of_one_process(const TPUStrategyOptions& options) {
  if (options.num_hosts < processes().size()) {
    EXPECT_THROW(TPUStrategy{options}, ValueError);
    return;
  }
  std::vector<Bits> expected;
  {
    TPUStrategy alone(options, single_process());
    expected = run_collective_program(alone);
  }
  TPUStrategy strategy(options);
  const std::vector<Bits> got = run_collective_program(strategy);
  ASSERT_EQ(static_cast<int>(got.size()), strategy.num_local_replicas());
  for (size_t r = 0; r < got.size(); ++r) {
    EXPECT_TRUE(got[r] == expected[strategy.first_local_replica() + r])
        << "replica " << r << " of rank " << processes().rank();
  }
}

TEST(MpiCollectivesTest, TheJobHasTheSizeOfTheLauncher) {
  const char* expected = std::getenv("KEEL_TEST_PROCESSES");
  ASSERT_NE(expected, nullptr);
  EXPECT_EQ(processes().size(), std::atoi(expected));
}

TEST(MpiCollectivesTest, FourHostsOfOneCoreGiveTheBitsOfOneProcess) {
  expect_the_bits_of_one_process({.num_hosts = 4, .num_cores = 1});
}

TEST(MpiCollectivesTest, SixHostsOfOneCoreGiveTheBitsOfOneProcess) {
  expect_the_bits_of_one_process({.num_hosts = 6, .num_cores = 1});
}

TEST(MpiCollectivesTest, TwoHostsOfTwoCoresGiveTheBitsOfOneProcess) {
  expect_the_bits_of_one_process({.num_hosts = 2, .num_cores = 2});
}

TEST(MpiCollectivesTest, ThreeHostsOfTwoCoresGiveTheBitsOfOneProcess) {
  expect_the_bits_of_one_process({.num_hosts = 3, .num_cores = 2});
}

TEST(MpiCollectivesTest, ACpuStrategyIsForOneProcess) {
  if (processes().size() == 1) {
    EXPECT_EQ(CPUStrategy().num_replicas_in_sync(), 1);
    return;
  }
  EXPECT_THAT(message_of<RuntimeError>([&] { CPUStrategy strategy; }),
              HasSubstr("use TPUStrategy"));
  EXPECT_EQ(Strategy::current().num_replicas_in_sync(), 1) << "each process on its own";
}

TEST(MpiCollectivesTest, MessagesOfAllSizesArrive) {
  ProcessGroup& group = processes();
  const Traffic before = group.sent();
  for (const int64_t n : {0, 1, 440, 441, 442, 443, 1000, 20'000, 300'000}) {
    const Tensor mine = Tensor::full<int64_t>({n}, n + group.rank());
    const std::vector<Tensor> all = gather_tensors(group, "sizes", {&mine, 1});
    ASSERT_EQ(static_cast<int>(all.size()), group.size());
    for (int p = 0; p < group.size(); ++p) {
      ASSERT_EQ(all[p].to_vector<int64_t>(), std::vector<int64_t>(n, n + p));
    }
  }
  const int64_t others = group.size() - 1;
  EXPECT_GE(group.sent().bytes_sent - before.bytes_sent, others * 300'000 * 8);
  EXPECT_GE(group.sent().messages - before.messages, others * 9);
}

TEST(MpiCollectivesTest, AnExchangeNeedsAMessageForEachProcess) {
  EXPECT_THROW(processes().exchange("too few", {}), ValueError);
  all_gather(processes(), "and changes nothing", {});
}

TEST(MpiCollectivesTest, StringsCannotBeSent) {
  const Tensor text = Tensor::full<std::string>({1}, "text");
  EXPECT_THROW(gather_tensors(processes(), "strings", {&text, 1}), TypeError);
}

}  // namespace keel::distribute::mpi_collectives_test
