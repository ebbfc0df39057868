// RowGradientList: rows of all tables with one replica's gradient sums. KWayMerge merges the lists
// of several replicas.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <keel/distribute/embedding/internal/table_shard.h>
#include <keel/framework/base/function_ref.h>
#include <keel/framework/kernels/embedding/row_groups.h>
#include <keel/framework/kernels/scratch.h>

namespace keel::distribute {

// The tables are stored one after the other. The ids of a table ascend; each is stored once, or
// once per occurrence if gradients are not accumulated.
class RowGradientList {
 public:
  // The rows of one table.
  struct Table {
    std::span<const int64_t> ids;
    const float* values = nullptr;  // [ids.size(), dim]
  };

  void clear();
  // Clears the list and takes over the memory of another list's values. The ids of that list stay
  // valid, because others may be reading them.
  void restart(RowGradientList& before);
  // Appends to the current table the ids and sums of the groups [first, end), or their entries one
  // by one if `each_entry`. `shift` is added to the ids. Call it any number of times per table,
  // then end_table().
  void append(const kernels::RowGroups& groups, int64_t first, int64_t end,
              const kernels::RowSources& sources, int64_t dim, bool each_entry, int64_t shift = 0);
  void end_table();
  // Sets the list to what another process has sent: a count per table, then all ids; all values.
  void assign(std::span<const int64_t> counts_and_ids, std::span<const float> values,
              size_t tables);

  // Replaces the ids of a table by number(id), or drops the rows for which that is 0. `dims` are
  // the row sizes of all tables.
  void renumber(size_t table, std::span<const int64_t> dims, FunctionRef<int64_t(int64_t)> number);

  // Returns the rows of a table; `dims` are the row sizes of all tables.
  Table table(size_t index, std::span<const int64_t> dims) const;
  std::span<const int64_t> ids(size_t table) const;
  // Return the two parts of the message that assign() takes.
  std::span<const int64_t> counts_and_ids(size_t tables);
  std::span<const float> values() const { return values_; }

 private:
  std::vector<int64_t> ends_;  // by table: end of its ids
  std::vector<int64_t> ids_;
  std::vector<int64_t> message_;
  kernels::ScratchVector<float> values_;
};

// Merges the rows of one table from several lists in ascending order of ids; rows of one id are in
// the order of the lists.
class KWayMerge {
 public:
  // Merges ids in [begin, end). Prefetches the rows of `table`, which are about to be updated. With
  // `sum`, the rows of one id are added in the order of the lists.
  KWayMerge(std::span<const RowGradientList::Table> lists, int64_t begin, int64_t end,
            const TableShard& table, bool sum);

  // Stores the next rows, at most `most`, into ids and values. Returns their number.
  int64_t next(int64_t most, int64_t* ids, float* values);
  // Returns the id of the next row; INT64_MAX at the end.
  int64_t next_id() const;

 private:
  struct Head {
    const int64_t* id;
    const int64_t* end;
    const float* row;
  };
  // Returns the key of a list's next row: its id, then the index of the list.
  uint64_t key(size_t list) const;
  // Removes the first of all rows from its list and returns it.
  const float* take();

  static constexpr int kListBits = 10;  // enough for the maximum number of replicas
  std::vector<Head> heads_;
  // A tournament tree of losers over the keys of the lists. Node n compares the winners of nodes
  // 2n and 2n + 1 and stores the greater key; the lists are the leaves below the last nodes.
  // winner_ is the least key of all.
  std::vector<uint64_t> losers_;
  uint64_t winner_ = 0;
  const TableShard& table_;
  const int64_t dim_, ahead_;
  const bool sum_;
};

}  // namespace keel::distribute
