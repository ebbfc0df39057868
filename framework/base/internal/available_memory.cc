#include <keel/framework/base/internal/available_memory.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

namespace keel {
namespace {

std::optional<int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  int64_t out = 0;
  if (file >> out) return out;
  return std::nullopt;  // does not exist, or "max": no limit
}

int64_t available_in_system(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  int64_t kilobytes = 0;
  for (std::string name; file >> name;) {
    if (name == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

// Returns the group of the process in the unified hierarchy: the line "0::/user.slice".
std::string memory_group(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.substr(3) == "/" ? "" : line.substr(3);
  }
  return "";
}

}  // namespace

int64_t available_memory(const std::string& root) {
  int64_t out = available_in_system(root);
  std::string group = memory_group(root);
  // In a container the path may be the host's name of the group even though the group is mounted at
  // the root, so all parents up to the root are read.
  while (true) {
    const std::string folder = root + "/sys/fs/cgroup" + group;
    const auto limit = number_in(folder + "/memory.max");
    const auto used = number_in(folder + "/memory.current");
    if (limit && used) out = std::min(out, std::max<int64_t>(0, *limit - *used));
    if (group.empty()) return out;
    group.resize(group.rfind('/'));
  }
}

}  // namespace keel
