// InvalidIdCounter: counts the invalid ids that the lookups of each feature dropped or replaced.
#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <vector>

#include <keel/layers/embedding/tables/internal/bags.h>

namespace keel {

// Thread-safe: replicas may call add() concurrently.
class InvalidIdCounter {
 public:
  explicit InvalidIdCounter(size_t features) : counts_(features) {}

  // Adds the counts of one lookup, by feature. Call it after everything that can fail.
  void add(const std::vector<IdCounts>& counts) {
    for (size_t f = 0; f < counts.size(); ++f) {
      if (counts[f].dropped != 0) counts_[f].dropped += counts[f].dropped;
      if (counts[f].replaced != 0) counts_[f].replaced += counts[f].replaced;
    }
  }
  // Adds dropped ids of one feature.
  void add_dropped(size_t feature, int64_t count) { counts_[feature].dropped += count; }
  // Returns the counts of one feature so far.
  IdCounts counts(size_t feature) const {
    return {.dropped = counts_[feature].dropped, .replaced = counts_[feature].replaced};
  }

 private:
  struct Atomic {
    std::atomic<int64_t> dropped = 0, replaced = 0;
  };
  std::deque<Atomic> counts_;  // by feature
};

// Returns the notices for the user of the layer `caller`: one line for each nonzero count.
std::vector<std::string> notices_of(const std::string& caller, const std::string& feature,
                                    const IdCounts& counts);

}  // namespace keel
