// The memory that the process can still take.
#pragma once

#include <cstdint>
#include <string>

namespace keel {

// Returns the bytes that the system can give to new allocations without swapping (MemAvailable of
// /proc/meminfo) or, if that is less, what the process's control group and its parents have left of
// their memory limits (v2). Returns 0 if it cannot be read.
//
// `root` is a path prefix of the control group file system and /proc; tests set it.
int64_t available_memory(const std::string& root = "");

}  // namespace keel
