// ScoredExamples: stores predictions one by one, for metrics that cannot be computed from sums.
#pragma once

#include <cstdint>
#include <vector>

#include <keel/distribute/strategy.h>

namespace keel {

// The stored predictions of one replica or of all.
struct ScoredExamples {
  std::vector<float> scores;
  std::vector<float> weights;   // negated if the label is negative; never 0
  std::vector<int64_t> groups;  // one per score, or empty
};

// The examples of each replica of a strategy. The default constructor uses the current strategy.
class ReplicaExamples {
 public:
  ReplicaExamples() : ReplicaExamples(distribute::Strategy::current()) {}
  explicit ReplicaExamples(distribute::Strategy& strategy);

  // Returns the examples of the replica that this thread runs, or of the first replica outside of
  // replicas. Throws RuntimeError, naming `caller`, in a replica that the strategy does not have.
  ScoredExamples& mine(const std::string& caller);
  // Returns the examples of all replicas in order. This is a collective over the processes; call it
  // outside of replicas.
  ScoredExamples all() const;
  // Drops the examples of all replicas of this process.
  void clear();

 private:
  std::vector<ScoredExamples> of_replicas_;  // one per replica of this process
  distribute::ProcessGroup* group_;
};

}  // namespace keel
