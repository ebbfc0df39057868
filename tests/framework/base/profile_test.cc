#include <keel/framework/base/profile.h>

#include <algorithm>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keel::profile::framework_profile_test {

using testing::HasSubstr;
using testing::Not;

void sleep_ms(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

const Row* find(const Report& report, Phase phase, const std::string& name) {
  const auto found = std::ranges::find_if(
      report.rows, [&](const Row& row) { return row.phase == phase && row.name == name; });
  return found == report.rows.end() ? nullptr : &*found;
}

TEST(ProfileTest, CountsNothingUnlessStarted) {
  {
    const Scope scope(Phase::kLookup, "before");
  }
  start();
  EXPECT_TRUE(is_running());
  const Report report = stop();
  EXPECT_FALSE(is_running());
  EXPECT_TRUE(report.rows.empty());
}

TEST(ProfileTest, ATraceListsEachScope) {
  start(true);
  {
    const Scope outer(Phase::kFramework, "outer");
    for (int i = 0; i < 2; ++i) {
      const Scope inner(Phase::kLookup, "with \"quotes\"");
      sleep_ms(1);
    }
  }
  const Report report = stop();
  ASSERT_EQ(report.events.size(), 3U);
  EXPECT_EQ(report.events[2].name, "outer");
  EXPECT_GE(report.events[2].duration, report.events[0].duration + report.events[1].duration);
  EXPECT_GE(report.events[1].begin, report.events[0].begin + report.events[0].duration);
  std::ostringstream out;
  write_chrome_trace(report, out);
  EXPECT_THAT(out.str(),
              HasSubstr(R"({"ph": "X", "name": "with \"quotes\"", "cat": "lookup", "ts": )"));
  start();
  {
    const Scope scope(Phase::kLookup, "untraced");
  }
  EXPECT_TRUE(stop().events.empty());
}

TEST(ProfileTest, TimeOfAScopeIsWithoutThatOfScopesInside) {
  start();
  {
    const Scope outer(Phase::kFramework, "outer");
    sleep_ms(2);
    for (int i = 0; i < 3; ++i) {
      const Scope inner(Phase::kLookup, "inner");
      sleep_ms(20);
    }
  }
  const Report report = stop();
  const Row* outer = find(report, Phase::kFramework, "outer");
  const Row* inner = find(report, Phase::kLookup, "inner");
  ASSERT_NE(outer, nullptr);
  ASSERT_NE(inner, nullptr);
  EXPECT_EQ(outer->calls, 1);
  EXPECT_EQ(inner->calls, 3);
  EXPECT_GE(inner->seconds, 0.06);
  EXPECT_GE(outer->seconds, 0.002);
  EXPECT_NEAR(outer->seconds + inner->seconds, report.busy_seconds(), 1e-9);
  EXPECT_LE(report.busy_seconds(), report.wall_seconds);
}

TEST(ProfileTest, WaitsAndFrameworkTimeAreNotKernelTime) {
  const Report report = {.rows = {{.phase = Phase::kForward, .name = "MatMul", .seconds = 3},
                                  {.phase = Phase::kFramework, .name = "tape", .seconds = 2},
                                  {.phase = Phase::kWait, .name = "barrier", .seconds = 7}}};
  EXPECT_EQ(report.busy_seconds(), 5);
  EXPECT_EQ(report.kernel_seconds(), 3);
  EXPECT_EQ(report.seconds(Phase::kWait), 7);
}

TEST(ProfileTest, OpsBelongToThePhaseOfTheEnclosingScope) {
  start();
  {
    const Scope op("MatMul");
  }
  {
    const Scope tape(Phase::kFramework, "tape", Phase::kBackward);
    const Scope op("MatMul");
  }
  const Report report = stop();
  EXPECT_NE(find(report, Phase::kForward, "MatMul"), nullptr);
  EXPECT_NE(find(report, Phase::kBackward, "MatMul"), nullptr);
}

TEST(ProfileTest, SumsOverThreadsIncludingEndedOnes) {
  start();
  for (int i = 0; i < 2; ++i) {
    std::thread([] { const Scope scope(Phase::kUpdate, "tables"); }).join();
  }
  {
    const Scope scope(Phase::kUpdate, "tables");
  }
  const Report report = stop();
  ASSERT_NE(find(report, Phase::kUpdate, "tables"), nullptr);
  EXPECT_EQ(find(report, Phase::kUpdate, "tables")->calls, 3);
  start();
  EXPECT_TRUE(stop().rows.empty());
}

TEST(ProfileTest, ScopesOpenAtItsStartOrEndAreNotCounted) {
  {
    const Scope early(Phase::kInput, "early");
    start();
  }
  Report report;
  {
    const Scope late(Phase::kInput, "late");
    report = stop();
  }
  EXPECT_TRUE(report.rows.empty());
  start();
  EXPECT_TRUE(stop().rows.empty());
}

TEST(ProfileTest, PrintsPhasesAndNamesWithTheirShare) {
  std::ostringstream out;
  print({.wall_seconds = 4,
         .rows = {{.phase = Phase::kLookup, .name = "pool", .calls = 2, .seconds = 1},
                  {.phase = Phase::kForward, .name = "MatMul", .calls = 5, .seconds = 3}}},
        out);
  EXPECT_THAT(out.str(), HasSubstr("lookup"));
  EXPECT_THAT(out.str(), HasSubstr("pool"));
  EXPECT_THAT(out.str(), HasSubstr("75.0 %"));
  EXPECT_THAT(out.str(), Not(HasSubstr("update")));
}

}  // namespace keel::profile::framework_profile_test
