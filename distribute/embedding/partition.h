// Which replica owns a row of a sharded table, and where it keeps it. Nobody else knows.
#pragma once

#include <cstdint>

namespace keel::distribute {

// Row r belongs to shard r mod shards: the frequent ids of a vocabulary sorted by frequency, its
// first ones, are dealt out evenly.
struct Partition {
  int shards = 1;

  int owner(int64_t row) const { return static_cast<int>(row % shards); }
  int64_t local_row(int64_t row) const { return row / shards; }
  int64_t global_row(int shard, int64_t local) const { return local * shards + shard; }
  int64_t rows_of(int shard, int64_t rows) const {
    return rows / shards + (shard < rows % shards ? 1 : 0);
  }
};

}  // namespace keel::distribute
