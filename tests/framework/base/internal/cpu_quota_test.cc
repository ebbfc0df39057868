#include <keel/framework/base/internal/cpu_quota.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace keel::cpu_quota_test {

using testing_support::TemporaryFolder;

// Writes the control group and /proc files of a simulated machine.
class CpuQuotaTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::optional<int> quota() const { return cpu_quota(root_.path()); }

 private:
  const TemporaryFolder root_;
};

TEST_F(CpuQuotaTest, WithoutGroupsThereIsNoLimit) { EXPECT_EQ(quota(), std::nullopt); }

TEST_F(CpuQuotaTest, ReadsTheSmallestQuotaOfAGroupAndItsAncestors) {
  write("/proc/self/cgroup", "0::/jobs/train\n");
  write("/sys/fs/cgroup/jobs/train/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  write("/sys/fs/cgroup/jobs/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota(), 4);
  write("/sys/fs/cgroup/jobs/train/cpu.max", "250000 100000\n");
  EXPECT_EQ(quota(), 3);
  write("/sys/fs/cgroup/jobs/train/cpu.max", "1000 100000\n");
  EXPECT_EQ(quota(), 1);
}

TEST_F(CpuQuotaTest, ReadsTheRootGroupOfAContainer) {
  write("/proc/self/cgroup", "0::/../docker/1f\n");
  write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2);
  write("/proc/self/cgroup", "0::/\n");
  EXPECT_EQ(quota(), 2);
}

TEST_F(CpuQuotaTest, ReadsTheFirstVersionOfGroups) {
  write("/proc/self/cgroup", "7:memory:/docker/1f\n4:cpuacct,cpu:/docker/1f\n0::/\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(quota(), 2);
}

TEST_F(CpuQuotaTest, UnreadableFilesAreNoLimit) {
  write("/proc/self/cgroup", "0\n0:\n0::\n0::relative\n0::/a\n");
  write("/sys/fs/cgroup/a/cpu.max", "");
  write("/sys/fs/cgroup/cpu.max", "many 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  write("/sys/fs/cgroup/cpu.max", "100000 0\n");
  EXPECT_EQ(quota(), std::nullopt);
}

}  // namespace keel::cpu_quota_test
