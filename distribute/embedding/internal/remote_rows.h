// RemoteRows: rows of tables that other processes hold, brought here for one lookup.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <keel/distribute/communicator.h>
#include <keel/distribute/embedding/internal/table_shard.h>
#include <keel/framework/kernels/embedding/unique.h>

namespace keel::distribute {

// Keeps its memory from lookup to lookup.
class RemoteRows {
 public:
  // ids[t]: of table t, those that are not held here, any number of times each. Collective; every
  // replica is asked by one or none of each other process. `label` names the tables' shapes.
  void fetch(Communicator& communicator, const std::vector<TableShard>& tables,
             std::span<const std::vector<int64_t>> ids, const std::string& label);
  // The row of ids[table][position].
  const float* row(size_t table, int64_t position) const {
    return rows_[table][number_[table][position]];
  }

 private:
  std::vector<kernels::GroupedIds> groups_;             // by table
  std::vector<std::vector<int64_t>> number_;            // by table, by position: of its distinct id
  std::vector<std::vector<const float*>> rows_;         // by table, by distinct id
  std::vector<std::vector<int64_t>> requests_;          // by rank: a count for each table, then ids
  std::vector<kernels::ScratchVector<float>> replies_;  // by rank: rows, table after table
  std::vector<std::vector<float>> fetched_;             // likewise
};

}  // namespace keel::distribute
