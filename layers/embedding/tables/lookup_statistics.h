// LookupStatistics: how many ids the lookups of an embedding table had.
#pragma once

#include <cstdint>

namespace keel {

// Counts over all lookups of one table. A lookup is one call in one replica; it has the ids of all
// features of the table in that replica's batch.
struct LookupStatistics {
  int64_t lookups = 0;            // number of lookups, of training and inference
  int64_t samples = 0;            // rows of the activations: bags, sequence steps and dense ids
  int64_t ids = 0;                // ids that were looked up, with replaced and without dropped ones
  int64_t distinct_ids = 0;       // sum over the lookups of the number of distinct ids
  int64_t most_ids = 0;           // the largest number of ids in one lookup
  int64_t most_distinct_ids = 0;  // the largest number of distinct ids in one lookup
  int64_t dropped = 0;            // invalid ids that were dropped (IdPolicy)
  int64_t replaced = 0;           // invalid ids that were replaced by the default row

  // Compares all counts.
  friend bool operator==(const LookupStatistics&, const LookupStatistics&) = default;
};

}  // namespace keel
