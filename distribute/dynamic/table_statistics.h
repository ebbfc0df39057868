// DynamicTableStatistics: the counters of a table for unbounded ids.
#pragma once

#include <cstdint>

namespace keel {

// Exact totals since the table was made. Checkpoints hold them. Two identities always hold:
//   looked_up = hits + fresh + not_admitted
//   size = admitted + assigned - evicted_ttl - evicted_norm - evicted_capacity - pruned - erased
struct DynamicTableStatistics {
  int64_t updates = 0;       // the number of updates
  int64_t looked_up = 0;     // occurrences of ids in the lookups of updates
  int64_t hits = 0;          // of these, occurrences of ids that had a row
  int64_t fresh = 0;         // of these, those that read the initial row of an id that qualified
  int64_t not_admitted = 0;  // of these, all others
  int64_t admitted = 0;      // ids that updates have given a row
  int64_t assigned = 0;      // ids that assign_rows() has given a row
  int64_t refused = 0;       // ids that qualified but found no room, once per update
  // Gradients that were dropped because the id had no row when the update ran, once per id and
  // update.
  int64_t dropped_gradients = 0;
  int64_t evicted_ttl = 0;          // rows evicted because of ttl
  int64_t evicted_norm = 0;         // rows evicted because of min_l2_norm
  int64_t evicted_capacity = 0;     // rows evicted because of the capacity
  int64_t pruned = 0;               // rows that prune() has removed
  int64_t erased = 0;               // rows that erase() has removed
  int64_t inference_looked_up = 0;  // occurrences in lookups that no update may follow
  int64_t inference_hits = 0;       // of these, occurrences of ids that had a row
  int64_t size = 0;                 // ids with a row, now
  int64_t pending = 0;              // ids that are counted for admission, now

  // Compares all counters.
  friend bool operator==(const DynamicTableStatistics&, const DynamicTableStatistics&) = default;
};

}  // namespace keel
