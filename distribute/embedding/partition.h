// Partition defines which host owns a row of a table, LocalRows where a process stores it. No other
// code depends on the mapping.
#pragma once

#include <algorithm>
#include <cstdint>

namespace keel::distribute {

// Selects how rows are assigned to hosts.
enum class ShardingStrategy {
  kDiv,  // contiguous blocks
  kMod,  // row r to host r mod hosts
};

// The number of hosts and the strategy that assigns rows to them.
struct Sharding {
  int hosts = 1;
  ShardingStrategy strategy = ShardingStrategy::kDiv;
};

// Assigns the rows of a table to hosts. With either strategy, the first (rows mod hosts) hosts own
// one row more than the others. The cores of a host share its memory: any of them reads any of its
// rows, and each update divides its rows evenly among them.
class Partition {
 public:
  // Divides a table of `rows` rows.
  Partition(int64_t rows, const Sharding& sharding)
      : sharding_(sharding), base_(rows / sharding.hosts), extra_(rows % sharding.hosts) {}

  int hosts() const { return sharding_.hosts; }
  ShardingStrategy strategy() const { return sharding_.strategy; }

  // Returns the host that owns a row.
  int owner(int64_t row) const {
    if (hosts() == 1) return 0;
    if (strategy() == ShardingStrategy::kMod) return static_cast<int>(row % hosts());
    const int64_t long_rows = extra_ * (base_ + 1);
    return static_cast<int>(row < long_rows
                                ? row / (base_ + 1)
                                : extra_ + (row - long_rows) / std::max<int64_t>(base_, 1));
  }
  // Returns the number of rows that a host owns.
  int64_t rows_of_host(int host) const { return base_ + (host < extra_ ? 1 : 0); }
  // Returns the k-th row of the host.
  int64_t row_of_host(int host, int64_t k) const {
    return strategy() == ShardingStrategy::kMod ? k * hosts() + host : first_row_of_host(host) + k;
  }
  // Returns the k for which row_of_host(owner(row), k) is `row`.
  int64_t index_in_host(int64_t row) const {
    return strategy() == ShardingStrategy::kMod ? row / hosts()
                                                : row - first_row_of_host(owner(row));
  }
  // Returns the first row of the host's block (kDiv only); for host hosts(), the number of rows.
  int64_t first_row_of_host(int host) const {
    return host * base_ + std::min<int64_t>(host, extra_);
  }

 private:
  Sharding sharding_;
  int64_t base_, extra_;
};

// The rows of the hosts [first, end) that one process holds, in ascending order.
class LocalRows {
 public:
  // The process holds the rows of the hosts [first_host, end_host).
  LocalRows(const Partition& partition, int first_host, int end_host)
      : partition_(partition), first_(first_host), end_(end_host) {
    for (int h = first_; h < end_; ++h) count_ += partition_.rows_of_host(h);
  }

  const Partition& partition() const { return partition_; }
  // Number of rows, whether they are the whole table, and whether they include a row.
  int64_t count() const { return count_; }
  bool all() const { return end_ - first_ == partition_.hosts(); }
  bool contain(int64_t row) const {
    if (all()) return true;
    const int host = partition_.owner(row);
    return host >= first_ && host < end_;
  }
  // Convert a row held here to its position among the local rows, and back.
  int64_t position(int64_t row) const {
    if (all()) return row;
    if (is_run()) return row - first_row();
    return row / partition_.hosts() * (end_ - first_) + row % partition_.hosts() - first_;
  }
  int64_t row_at(int64_t position) const {
    if (all()) return position;
    if (is_run()) return first_row() + position;
    const int local_hosts = end_ - first_;
    return position / local_hosts * partition_.hosts() + position % local_hosts + first_;
  }
  // Returns true if the rows are contiguous in the table; first_row() is then the first of them.
  bool is_run() const { return all() || partition_.strategy() == ShardingStrategy::kDiv; }
  int64_t first_row() const { return all() ? 0 : partition_.first_row_of_host(first_); }

 private:
  Partition partition_;
  int first_, end_;
  int64_t count_ = 0;
};

}  // namespace keel::distribute
