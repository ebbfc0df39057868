// How much of the machine's processors a control group leaves to this process.
#pragma once

#include <optional>
#include <string>

namespace keel {

// As many processors' time as Linux control groups (v2's cpu.max, v1's cpu.cfs_quota_us) give the
// group of this process and those above it, rounded up; nothing without a limit, or where it cannot
// be read. Containers with a limit of processors have one: `docker run --cpus 2`.
// `root`: where the file system of the groups and /proc are, for tests.
std::optional<int> cpu_quota(const std::string& root = "");

}  // namespace keel
