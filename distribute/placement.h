// Placement: which process runs which replicas.
#pragma once

#include <vector>

#include <keel/distribute/process_group.h>

namespace keel::distribute {

// Replicas are numbered over all processes; each process runs a contiguous run of them.
struct Placement {
  int process = 0;                  // this one
  std::vector<int> first = {0, 1};  // replica of each process; then the number of replicas

  int processes() const { return static_cast<int>(first.size()) - 1; }
  int replicas() const { return first.back(); }
  int first_local() const { return first[process]; }
  int local() const { return first[process + 1] - first[process]; }
  int process_of(int replica) const;
};

// Deals whole hosts out, in contiguous runs, the first processes one more where it does not
// divide. ValueError if there are fewer hosts than processes.
Placement place_hosts(int hosts, int cores_of_each, const ProcessGroup& group);

}  // namespace keel::distribute
