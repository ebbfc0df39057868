// InvalidIdCounter: how many odd ids the lookups of each feature have met.
#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <vector>

#include <keel/layers/embedding/tables/bags.h>

namespace keel {

// Any number of replicas may add at once.
class InvalidIdCounter {
 public:
  explicit InvalidIdCounter(size_t features) : counts_(features) {}

  // What one lookup has met, by feature; once nothing can fail any more.
  void add(const std::vector<IdCounts>& counts) {
    for (size_t f = 0; f < counts.size(); ++f) {
      if (counts[f].dropped != 0) counts_[f].dropped += counts[f].dropped;
      if (counts[f].replaced != 0) counts_[f].replaced += counts[f].replaced;
    }
  }
  IdCounts counts(size_t feature) const {
    return {.dropped = counts_[feature].dropped, .replaced = counts_[feature].replaced};
  }

 private:
  struct Atomic {
    std::atomic<int64_t> dropped = 0, replaced = 0;
  };
  std::deque<Atomic> counts_;  // by feature
};

// What to tell the user of the layer `caller`: a line for each kind of odd id that was met.
std::vector<std::string> notes_of(const std::string& caller, const std::string& feature,
                                  const IdCounts& counts);

}  // namespace keel
