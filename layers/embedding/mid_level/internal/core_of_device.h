// Maps device strings to the cores of a strategy.
#pragma once

#include <string>

namespace keel {

// The hosts of a strategy and the number of cores of each.
struct CoresOfHosts {
  int hosts = 1;
  int cores_of_each = 1;
};

// Returns the core that a device string names: "/device:TPU:3", or with further parts,
// "/job:worker/replica:0/task:1/device:TPU:0". The number counts the cores of the task's host, or
// all cores if there is no task. Throws ValueError for a string that is not a device, for a device
// that is not a TPU, and for a core that does not exist.
int core_of_device(const std::string& device, const CoresOfHosts& cores);

}  // namespace keel
