// Which replica owns a row of a sharded table, and where it keeps it. Nobody else knows.
#pragma once

#include <algorithm>
#include <cstdint>

namespace keel::distribute {

// How rows are dealt to hosts.
enum class ShardingStrategy {
  kDiv,  // contiguous blocks
  kMod,  // row r to host r mod hosts
};

// The replicas that hold tables: the cores of one host after those of the other.
struct Sharding {
  int hosts = 1;
  int cores_per_host = 1;
  ShardingStrategy strategy = ShardingStrategy::kDiv;

  int shards() const { return hosts * cores_per_host; }
};

// Either way the first rows mod hosts hosts own one row more than the others. Inside a host, its
// k-th row belongs to core k mod cores: the frequent ids of a vocabulary sorted by frequency, its
// first ones, are dealt out evenly.
class Partition {
 public:
  Partition(int64_t rows, const Sharding& sharding)
      : sharding_(sharding), base_(rows / sharding.hosts), extra_(rows % sharding.hosts) {}

  int shards() const { return sharding_.shards(); }

  int owner(int64_t row) const {
    const Place p = place(row);
    return p.host * sharding_.cores_per_host + static_cast<int>(p.row % sharding_.cores_per_host);
  }
  int64_t local_row(int64_t row) const { return place(row).row / sharding_.cores_per_host; }
  int64_t global_row(int shard, int64_t local) const {
    const int host = shard / sharding_.cores_per_host;
    const int core = shard % sharding_.cores_per_host;
    const int64_t row = local * sharding_.cores_per_host + core;
    return sharding_.strategy == ShardingStrategy::kMod ? row * sharding_.hosts + host
                                                        : first_row_of_host(host) + row;
  }
  int64_t rows_of(int shard) const {
    const int64_t rows = rows_of_host(shard / sharding_.cores_per_host);
    const int64_t cores = sharding_.cores_per_host;
    return rows / cores + (shard % cores < rows % cores ? 1 : 0);
  }
  int64_t rows_of_host(int host) const { return base_ + (host < extra_ ? 1 : 0); }
  // Of contiguous blocks: where the host's begins.
  int64_t first_row_of_host(int host) const {
    return host * base_ + std::min<int64_t>(host, extra_);
  }

 private:
  struct Place {
    int host;
    int64_t row;  // among the host's
  };
  Place place(int64_t row) const {
    if (sharding_.hosts == 1) return {0, row};
    if (sharding_.strategy == ShardingStrategy::kMod) {
      return {static_cast<int>(row % sharding_.hosts), row / sharding_.hosts};
    }
    const int64_t long_rows = extra_ * (base_ + 1);
    const auto host = static_cast<int>(row < long_rows ? row / (base_ + 1)
                                                       : extra_ + (row - long_rows) /
                                                                      std::max<int64_t>(base_, 1));
    return {host, row - first_row_of_host(host)};
  }

  Sharding sharding_;
  int64_t base_, extra_;
};

}  // namespace keel::distribute
