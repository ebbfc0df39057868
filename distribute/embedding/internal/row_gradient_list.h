// RowGradientList: rows of all tables with the sums that one replica has for them; KWayMerge walks
// those of several replicas together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <keel/distribute/embedding/internal/table_shard.h>
#include <keel/framework/kernels/embedding/row_groups.h>
#include <keel/framework/kernels/scratch.h>

namespace keel::distribute {

// Tables follow each other. The ids of one ascend; each stands once, or once for each occurrence.
class RowGradientList {
 public:
  struct Table {
    std::span<const int64_t> ids;
    const float* values = nullptr;  // [ids.size(), dim]
  };

  void clear();
  // The same, with the memory of another list's values: its ids may be read meanwhile.
  void restart(RowGradientList& before);
  // Of the next table: ids and sums of the groups [first, end), or of their entries one by one.
  // Call it any number of times, then end_table().
  void append(const kernels::RowGroups& groups, int64_t first, int64_t end,
              const kernels::RowSources& sources, int64_t dim, bool each_entry);
  void end_table();
  // From what another process has sent: for each table a count, then all ids; all values.
  void assign(std::span<const int64_t> counts_and_ids, std::span<const float> values,
              size_t tables);

  Table table(size_t index, std::span<const int64_t> dims) const;
  std::span<const int64_t> ids(size_t table) const;
  std::span<const int64_t> counts_and_ids(size_t tables);
  std::span<const float> values() const { return values_; }

 private:
  std::vector<int64_t> ends_;  // by table: of its ids among all
  std::vector<int64_t> ids_;
  std::vector<int64_t> message_;
  kernels::ScratchVector<float> values_;
};

// The rows of one table from several lists, ascending; those of one id in the order of the lists.
class KWayMerge {
 public:
  // Ids in [begin, end) of a table that they are about to step, which is asked for them ahead of
  // time. With `sum`, the sums of one id are added up, in the order of the lists.
  KWayMerge(std::span<const RowGradientList::Table> lists, int64_t begin, int64_t end,
            const TableShard& table, bool sum);

  // The next rows, at most `most`: fills ids and values, returns their number.
  int64_t next(int64_t most, int64_t* ids, float* values);
  // The id that comes next; INT64_MAX at the end.
  int64_t next_id() const;

 private:
  struct Head {
    const int64_t* id;
    const int64_t* end;
    const float* row;
  };
  // What comes next in a list: its id, then the number of the list.
  uint64_t key(size_t list) const;
  // The first row of all, which its list then leaves behind.
  const float* take();

  static constexpr int kListBits = 10;  // as many lists as there may be replicas
  std::vector<Head> heads_;
  // A tournament of the keys of lists: node n has played those that have come through nodes 2 n and
  // 2 n + 1, and keeps the greater; lists stand below the last nodes. The least has won all.
  std::vector<uint64_t> losers_;
  uint64_t winner_ = 0;
  const TableShard& table_;
  const int64_t dim_, ahead_;
  const bool sum_;
};

}  // namespace keel::distribute
