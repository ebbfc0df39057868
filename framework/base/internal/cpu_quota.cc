#include <keel/framework/base/internal/cpu_quota.h>

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <vector>

namespace keel {
namespace {

constexpr char kGroups[] = "/sys/fs/cgroup";

// Returns the numbers with which the file's first line begins; none if the file does not exist.
std::vector<double> numbers_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::vector<double> out;
  for (const absl::string_view word : absl::StrSplit(line, ' ')) {
    double number = 0;
    if (!absl::SimpleAtod(word, &number)) break;
    out.push_back(number);
  }
  return out;
}

// Lowers `least` to quota / period if that is a limit.
void lower(std::optional<double>& least, double quota, double period) {
  if (quota > 0 && period > 0) least = std::min(least.value_or(quota / period), quota / period);
}

// Reads a v2 limit, "quota period" in microseconds. The quota is "max" if there is no limit.
void read_v2(const std::string& folder, std::optional<double>& least) {
  const std::vector<double> limit = numbers_of(folder + "/cpu.max");
  if (limit.size() >= 2) lower(least, limit[0], limit[1]);
}

// Reads a v1 limit. A quota of -1 means no limit.
void read_v1(const std::string& folder, std::optional<double>& least) {
  const std::vector<double> quota = numbers_of(folder + "/cpu.cfs_quota_us");
  const std::vector<double> period = numbers_of(folder + "/cpu.cfs_period_us");
  if (!quota.empty() && !period.empty()) lower(least, quota[0], period[0]);
}

// Calls fn(group) for the group and all its parents; "" is last.
template <class Fn>
void for_each_above(std::string group, const Fn& fn) {
  if (group == "/") group.clear();
  for (; !group.empty(); group.resize(group.rfind('/'))) fn(group);
  fn(group);
}

}  // namespace

std::optional<int> cpu_quota(const std::string& root) {
  std::optional<double> least;
  // Parses lines like "0::/user.slice" (v2) and "4:cpu,cpuacct:/docker/1f" (v1). In a container the
  // path may be the host's name of the group even though the group is mounted at the root, so all
  // parents up to the root are read.
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || line.size() == second + 1 || line[second + 1] != '/')
      continue;
    const std::string kinds = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (kinds == ",,") {
      for_each_above(group, [&](const std::string& g) { read_v2(root + kGroups + g, least); });
    } else if (absl::StrContains(kinds, ",cpu,")) {
      for_each_above(group,
                     [&](const std::string& g) { read_v1(root + kGroups + "/cpu" + g, least); });
    }
  }
  if (!least) return std::nullopt;
  return std::max(1, static_cast<int>(std::ceil(std::min(*least, 1e6))));
}

}  // namespace keel
