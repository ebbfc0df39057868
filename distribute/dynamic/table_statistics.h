// DynamicTableStatistics: the counters of a table for unbounded ids.
#pragma once

#include <cstdint>

namespace keel {

// Exact totals since the table was made. Checkpoints hold them. Two identities always hold:
//   looked_up = hits + fresh + not_admitted
//   size = admitted + assigned - evicted_ttl - evicted_norm - evicted_capacity - pruned - erased
struct DynamicTableStatistics {
  int64_t updates = 0;  // the number of updates
  // Occurrences of ids in the lookups of updates, by the result of the lookup: all, those whose id
  // had a row, those that read the initial row of an id that qualified, and all others.
  int64_t looked_up = 0, hits = 0, fresh = 0, not_admitted = 0;
  int64_t admitted = 0;  // ids that updates have given a row
  int64_t assigned = 0;  // ids that assign_rows() has given a row
  int64_t refused = 0;   // ids that qualified but found no room, once per update
  // Gradients that were dropped because the id had no row when the update ran, once per id and
  // update.
  int64_t dropped_gradients = 0;
  // Rows evicted because of ttl, of min_l2_norm and of the capacity.
  int64_t evicted_ttl = 0, evicted_norm = 0, evicted_capacity = 0;
  int64_t pruned = 0, erased = 0;  // rows that prune() and erase() have removed
  // Occurrences in lookups that no update may follow, and those of them whose id had a row.
  int64_t inference_looked_up = 0, inference_hits = 0;
  int64_t size = 0, pending = 0;  // ids with a row, and ids that are counted for admission, now

  // Compares all counters.
  friend bool operator==(const DynamicTableStatistics&, const DynamicTableStatistics&) = default;
};

}  // namespace keel
