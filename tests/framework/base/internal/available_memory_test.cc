#include <keel/framework/base/internal/available_memory.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace keel::available_memory_test {

// Writes the control group and /proc files of a simulated machine.
class AvailableMemoryTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  const testing_support::TemporaryFolder folder_;
  const std::string root_ = folder_.path();
};

constexpr char kMeminfo[] =
    "MemTotal:  100 kB\nMemFree:  7 kB\nMemAvailable:    50 kB\nCached: 9 kB\n";

TEST_F(AvailableMemoryTest, IsThatOfTheSystemWithoutALimit) {
  EXPECT_EQ(available_memory(root_), 0);
  write("/proc/meminfo", kMeminfo);
  EXPECT_EQ(available_memory(root_), 50 * 1024);
  write("/proc/self/cgroup", "0::/jobs/serve\n");
  write("/sys/fs/cgroup/jobs/serve/memory.max", "max\n");
  write("/sys/fs/cgroup/jobs/serve/memory.current", "1000\n");
  EXPECT_EQ(available_memory(root_), 50 * 1024);
}

TEST_F(AvailableMemoryTest, IsWhatTheTightestGroupHasLeft) {
  write("/proc/meminfo", kMeminfo);
  write("/proc/self/cgroup", "0::/jobs/serve\n");
  write("/sys/fs/cgroup/jobs/memory.max", "20000\n");
  write("/sys/fs/cgroup/jobs/memory.current", "15000\n");
  EXPECT_EQ(available_memory(root_), 5000);
  write("/sys/fs/cgroup/jobs/serve/memory.max", "9000\n");
  write("/sys/fs/cgroup/jobs/serve/memory.current", "8000\n");
  EXPECT_EQ(available_memory(root_), 1000);
  write("/sys/fs/cgroup/jobs/memory.current", "30000\n");
  EXPECT_EQ(available_memory(root_), 0);
}

TEST_F(AvailableMemoryTest, IsPositiveHere) { EXPECT_GT(available_memory(), 0); }

}  // namespace keel::available_memory_test
