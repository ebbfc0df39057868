// Which core of a strategy a device string names.
#pragma once

#include <string>

namespace keel {

struct CoresOfHosts {
  int hosts = 1;
  int cores_of_each = 1;
};

// "/device:TPU:3", or with parts before it, "/job:worker/replica:0/task:1/device:TPU:0": the core
// of that number among those of the task's host, or among all where there is no task.
// ValueError for a string that is no device, another kind of device, and one that is not there.
int core_of_device(const std::string& device, const CoresOfHosts& cores);

}  // namespace keel
