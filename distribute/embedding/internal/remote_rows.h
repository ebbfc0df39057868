// RemoteRows fetches table rows that other processes hold, for one lookup.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <keel/distribute/communicator.h>
#include <keel/distribute/embedding/internal/table_shard.h>
#include <keel/framework/kernels/embedding/unique.h>

namespace keel::distribute {

// The fetched rows of one lookup. The memory is reused by the next one.
class RemoteRows {
 public:
  // Fetches rows; ids[t] are those of table t that are not held here, in any order, possibly
  // repeated. Collective. Requests are spread over the replicas of the other process. `label` must
  // identify the tables' shapes, so that processes with different tables fail.
  void fetch(Communicator& communicator, const std::vector<TableShard>& tables,
             std::span<const std::vector<int64_t>> ids, const std::string& label);
  // Returns the row of ids[table][position].
  const float* row(size_t table, int64_t position) const {
    return rows_[table][number_[table][position]];
  }

 private:
  std::vector<std::vector<int>> group_by_rank(const Communicator& communicator,
                                              const std::vector<TableShard>& tables,
                                              std::span<const std::vector<int64_t>> ids);

  std::vector<kernels::GroupedIds> groups_;      // by table
  std::vector<std::vector<int64_t>> number_;     // by table, by position: distinct id's index
  std::vector<std::vector<const float*>> rows_;  // by table, by distinct id
  std::vector<std::vector<int64_t>> requests_;   // by rank: a count per table, then the ids
  std::vector<kernels::ScratchVector<float>> replies_;  // by rank: rows, table after table
  std::vector<std::vector<float>> fetched_;             // by rank: rows, table after table
};

}  // namespace keel::distribute
