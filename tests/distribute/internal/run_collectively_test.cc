#include <keel/distribute/internal/run_collectively.h>

#include <gtest/gtest.h>

#include "tests/distribute/fake_processes.h"

namespace keel::distribute::run_collectively_test {

TEST(FailTogetherTest, NothingIsThrownWhereNothingFails) {
  FakeJob job(3);
  const auto errors =
      job.run([](ProcessGroup& group) { run_collectively(group, "nothing", [] {}); });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

TEST(FailTogetherTest, AllThrowTheTypeOfTheOneThatFailsAndGoOn) {
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

TEST(FailTogetherTest, TheLowestRankIsHeardWhereSeveralFail) {
  FakeJob job(3);
  const auto errors = job.run([](ProcessGroup& group) {
    run_collectively(group, "write", [&] {
      if (group.rank() > 0) throw RuntimeError("this is ", group.rank());
    });
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"rank 1: this is 1", "this is 1", "this is 2"}));
}

TEST(FailTogetherTest, AnErrorOfOneProcessIsItsOwn) {
  try {
    run_collectively(single_process(), "write", [] { throw IoError("disk full"); });
    FAIL() << "no error";
  } catch (const IoError& error) {
    EXPECT_STREQ(error.what(), "disk full");
  }
}

TEST(FailTogetherTest, TextsComeInTheOrderOfRanks) {
  FakeJob job(2);
  const auto errors = job.run([](ProcessGroup& group) {
    EXPECT_EQ(gather_texts(group, "names", group.rank() == 0 ? "" : "second"),
              (std::vector<std::string>{"", "second"}));
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

}  // namespace keel::distribute::run_collectively_test
