// The values that calls between steps pass to and get from a table for unbounded ids.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <keel/distribute/dynamic/table_statistics.h>
#include <keel/framework/random.h>
#include <keel/framework/tensor.h>

namespace keel {

// What a table knows about one id.
struct DynamicKeyInfo {
  bool admitted = false;      // the id has a row
  int64_t count = 0;          // occurrences since it got the row
  int64_t last = 0;           // time of the last occurrence
  int64_t born = 0;           // time when it got the row
  int64_t pending_count = 0;  // occurrences that count towards admission
  int owner = 0;              // the host that owns the id
};

// Options of DynamicTable::prune. Unset options remove nothing.
struct PruneOptions {
  int64_t ttl = 0;         // > 0: removes rows without an occurrence for this time
  double min_l2_norm = 0;  // > 0: removes rows with a lower norm
  int64_t min_count = 0;   // removes rows with a lower count
  int64_t max_rows = -1;   // >= 0: then removes the lowest ranks until so many rows remain
};

// Why a row was removed.
enum class EvictionReason { kTtl, kNorm, kCapacity, kPruned, kErased };

// The rows that one boundary, prune() or erase() has removed, in ascending order of ids.
struct EvictedRows {
  Tensor keys;                          // int64 or string [n]
  Tensor rows;                          // float32 [n, dim]
  std::map<std::string, Tensor> slots;  // by name, float32 [n, dim] or one value per row: [n, 1]
  std::vector<int64_t> counts;          // by row
  std::vector<EvictionReason> reasons;  // by row
};
// A function that is called with removed rows. It must not change the table.
using EvictionCallback = std::function<void(const EvictedRows&)>;

// All rows of a table and the state of its ids, in ascending order of ids.
struct DynamicTableState {
  Tensor keys;                          // int64 or string [n]
  Tensor rows;                          // float32 [n, dim]
  std::map<std::string, Tensor> slots;  // by name, float32 [n, dim] or one value per row: [n, 1]
  Tensor count;                         // int64 [n]; for this and the next two see DynamicKeyInfo
  Tensor last;                          // int64 [n]
  Tensor born;                          // int64 [n]
  Tensor pending_keys;                  // int64 or string [m]: ids that are counted for admission
  Tensor pending_count;                 // int64 [m]: their occurrences
  Tensor pending_last;                  // int64 [m]: the times of their last occurrences
  std::vector<uint8_t> sketch = {};     // its cells; empty without a sketch
  Tensor fallback;                      // float32 [k, dim]
  std::map<std::string, Tensor> fallback_slots;  // by name, float32 [k, dim] or [k, 1]
  DynamicTableStatistics statistics = {};        // all counters
  int64_t clock = 0;                             // the user clock
  RandomStream stream = {};                      // from which initial rows are drawn
};

// The memory of a table in bytes.
struct DynamicTableMemory {
  int64_t rows = 0;     // weights and slots
  int64_t index = 0;    // ids, counts and times; without the bytes of strings
  int64_t pending = 0;  // ids that are counted for admission
  int64_t sketch = 0;   // the sketch
};

}  // namespace keel
