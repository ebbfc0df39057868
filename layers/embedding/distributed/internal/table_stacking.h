// Table stacking: determines which tables of a DistributedEmbedding share one engine table, and the
// rows of each. Results are bit-identical with and without stacking.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/embedding/distributed/distributed_config.h>

namespace keel {

// The properties of a table that determine its stack.
struct StackableTable {
  std::string name = {};
  int64_t vocabulary_size = 0, dim = 0;
  std::string combiner = "mean";
  EmbeddingOptimizer optimizer = {};
  int64_t samples = 0;   // sum over the global batches of its features; 0 if unknown
  bool dynamic = false;  // dynamic ids: the table is not stacked
};

// Options of stack_tables.
struct StackingOptions {
  int shards = 1;  // number of sparse cores of all devices
  int sparse_cores_per_device = 1;
  // "auto" limits a stack to tables whose activations fit in one sparse core: padded dim * 4 bytes
  // for each sample. A table that exceeds the limit on its own is not stacked.
  int64_t activation_mem_bytes_limit = 2 << 20;
};

// Round up to a multiple of 8, and to a multiple of 8 for each shard.
int64_t padded_dim(int64_t dim);
int64_t padded_vocabulary_size(int64_t vocabulary_size, int shards);

// One table of a stack.
struct StackMember {
  int table = 0;  // its position in the list of tables
  std::string name = {};
  int64_t vocabulary_size = 0, dim = 0;
  int64_t padded_vocabulary_size = 0;
  int64_t shard_row = 0;  // its first row in every shard
  int rotation = 0;  // shift of its rows over the shards, which spreads the low ids of all tables
};

// A stack of tables, which are concatenated in every shard. Id i of a member is on shard (i mod
// shards + rotation) mod shards, in row shard_row + i div shards. A stack of one table is that
// table, without padding.
struct TableStack {
  std::string name = {};  // the members' names joined by '_'
  int shards = 1;
  int64_t dim = 0;              // padded, common to all members
  int64_t vocabulary_size = 0;  // sum over all members, padded
  std::vector<StackMember> members = {};

  // A member and an id of it.
  struct MemberId {
    const StackMember* member;
    int64_t id;
  };
  // The rows [begin, end) of a stack.
  struct RowRange {
    int64_t begin = 0, end = 0;
  };

  // Returns the shard of an id.
  int shard(const StackMember& member, int64_t id) const {
    return static_cast<int>((id % shards + member.rotation) % shards);
  }
  // Returns the row of an id within its shard.
  int64_t local_row(const StackMember& member, int64_t id) const {
    return member.shard_row + id / shards;
  }
  // Returns the row of an id in the stack as one table, whose row r is on shard r mod shards.
  int64_t row(const StackMember& member, int64_t id) const {
    return local_row(member, id) * shards + shard(member, id);
  }
  // Returns the member and id of a row; unset for padding.
  std::optional<MemberId> find(int64_t row) const;

  // Returns the rows that hold ids [begin, end) of a member. They are contiguous and start and end
  // at multiples of `shards`.
  RowRange rows_of(const StackMember& member, int64_t begin, int64_t end) const;
  // Copy the values of ids [begin, end), [end - begin, member.dim], out of those rows, [n, dim],
  // and back into them.
  void unstack(const StackMember& member, int64_t begin, int64_t end, const float* rows,
               float* out) const;
  void stack(const StackMember& member, int64_t begin, int64_t end, const float* values,
             float* rows) const;
};

// Assigns every table to exactly one stack. "auto" stacks tables with equal padded dim, optimizer
// and combiner, in order of their names, each into the first stack with enough room. Tables whose
// optimizer has a user-defined rule, user-defined slots or a required width, and tables with
// dynamic ids are not stacked.
// Throws ValueError for a list that names a table twice or one with dynamic ids, a table that
// another list contains, or an unknown table, and for tables in one list that differ in padded dim,
// optimizer or combiner.
std::vector<TableStack> stack_tables(const std::vector<StackableTable>& tables,
                                     const TableStacking& stacking, const StackingOptions& options);

}  // namespace keel
