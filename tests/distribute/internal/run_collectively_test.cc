#include <keel/distribute/internal/run_collectively.h>

#include <gtest/gtest.h>

#include "tests/distribute/fake_processes.h"
#include "tests/support/errors.h"

namespace keel::distribute::run_collectively_test {

using testing_support::message_of;

TEST(RunCollectivelyTest, NothingIsThrownWhereNothingFails) {
  FakeJob job(3);
  const auto errors =
      job.run([](ProcessGroup& group) { run_collectively(group, "nothing", [] {}); });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

TEST(RunCollectivelyTest, AllProcessesThrowTheTypeOfTheFailedOneAndContinue) {
  FakeJob job(3);
  const auto errors = job.run([](ProcessGroup& group) {
    EXPECT_THROW(run_collectively(group, "write",
                                  [&] {
                                    if (group.rank() == 1) throw IoError("disk full");
                                  }),
                 IoError);
    EXPECT_THROW(run_collectively(group, "check",
                                  [&] {
                                    if (group.rank() == 2) throw ValueError("negative");
                                  }),
                 ValueError);
    run_collectively(group, "last", [&] {
      if (group.rank() == 1) throw TypeError("a string");
    });
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"rank 1: a string", "a string", "rank 1: a string"}));
}

TEST(RunCollectivelyTest, TheErrorOfTheLowestRankWins) {
  FakeJob job(3);
  const auto errors = job.run([](ProcessGroup& group) {
    run_collectively(group, "write", [&] {
      if (group.rank() > 0) throw RuntimeError("this is ", group.rank());
    });
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"rank 1: this is 1", "this is 1", "this is 2"}));
}

TEST(RunCollectivelyTest, AnErrorOfASingleProcessIsUnchanged) {
  EXPECT_EQ(message_of<IoError>([&] {
              run_collectively(single_process(), "write", [] { throw IoError("disk full"); });
            }),
            "disk full");
}

TEST(RunCollectivelyTest, TextsAreInTheOrderOfRanks) {
  FakeJob job(2);
  const auto errors = job.run([](ProcessGroup& group) {
    EXPECT_EQ(gather_texts(group, "names", group.rank() == 0 ? "" : "second"),
              (std::vector<std::string>{"", "second"}));
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

}  // namespace keel::distribute::run_collectively_test
