// Placement assigns replicas to processes.
#pragma once

#include <vector>

#include <keel/distribute/process_group.h>

namespace keel::distribute {

// Replicas are numbered over all processes; each process runs a contiguous range of them.
struct Placement {
  int process = 0;                  // rank of this process
  std::vector<int> first = {0, 1};  // first replica of each process, then the number of replicas

  // Numbers of processes and replicas, and the replicas of this process.
  int processes() const { return static_cast<int>(first.size()) - 1; }
  int replicas() const { return first.back(); }
  int first_local() const { return first[process]; }
  int local() const { return first[process + 1] - first[process]; }  // number of replicas here
  // Returns the process that runs a replica.
  int process_of(int replica) const;
};

// Assigns whole hosts to processes in contiguous ranges; if the number of hosts is not a multiple
// of the number of processes, the first processes get one more. Throws ValueError if there are
// fewer hosts than processes.
Placement place_hosts(int hosts, int cores_of_each, const ProcessGroup& group);

}  // namespace keel::distribute
