// The processor limit that the process's control group imposes.
#pragma once

#include <optional>
#include <string>

namespace keel {

// Returns the number of processors, rounded up, whose time Linux control groups grant to this
// process: the tightest limit of its group and all parent groups (v2: cpu.max, v1:
// cpu.cfs_quota_us). Returns nullopt if there is no limit or if it cannot be read. Containers with
// a processor limit have one, for example `docker run --cpus 2`.
//
// `root` is a path prefix of the control group file system and /proc; tests set it.
std::optional<int> cpu_quota(const std::string& root = "");

}  // namespace keel
