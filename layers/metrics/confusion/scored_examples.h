// ScoredExamples: predictions that metrics keep one by one, since no sums can stand for them.
#pragma once

#include <cstdint>
#include <vector>

#include <keel/distribute/strategy.h>

namespace keel {

struct ScoredExamples {
  std::vector<float> scores;
  std::vector<float> weights;   // minus the weight where the label is negative; none is 0
  std::vector<int64_t> groups;  // or none
};

// Those of each replica of the strategy in whose scope it is made.
class ReplicaExamples {
 public:
  ReplicaExamples() : ReplicaExamples(distribute::Strategy::current()) {}
  explicit ReplicaExamples(distribute::Strategy& strategy);

  // Those of the replica that this thread runs; of the first one outside. RuntimeError, naming
  // `caller`, in a replica that the strategy does not have.
  ScoredExamples& mine(const std::string& caller);
  // Those of all replicas, in order. Collective over the processes; outside of replicas.
  ScoredExamples all() const;
  void clear();

 private:
  std::vector<ScoredExamples> of_replicas_;  // in this process
  distribute::ProcessGroup* group_;
};

}  // namespace keel
