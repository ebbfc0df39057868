// Table stacking: which tables of a DistributedEmbedding share one engine table, and where their
// rows lie in it. Tables stacked or not give the same bits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/optimizers/embedding/embedding_optimizer.h>

namespace keel {

// Which tables to stack: "auto", nothing (std::nullopt), the tables of one list of names together,
// or those of each of several lists.
class TableStacking {
 public:
  TableStacking(const char* text);               // NOLINT: implicit. ValueError but "auto"
  TableStacking(std::nullopt_t) {}               // NOLINT: implicit
  TableStacking(std::vector<std::string> names)  // NOLINT: implicit
      : lists_({std::move(names)}), one_list_(true) {}
  TableStacking(std::vector<std::vector<std::string>> lists)  // NOLINT: implicit
      : lists_(std::move(lists)) {}

  bool is_auto() const { return auto_; }
  const std::vector<std::vector<std::string>>& lists() const { return lists_; }

  friend Config encode(const TableStacking& stacking);  // "auto", null, or lists
  friend void decode(const Config& config, TableStacking& stacking);

 private:
  bool auto_ = false;
  std::vector<std::vector<std::string>> lists_ = {};
  bool one_list_ = false;  // written as the user gave it
};

// What stacking asks of a table.
struct StackableTable {
  std::string name = {};
  int64_t vocabulary_size = 0, dim = 0;
  std::string combiner = "mean";
  EmbeddingOptimizer optimizer = {};
  int64_t samples = 0;  // of its features' global batches together; 0 if not known
};

struct StackingOptions {
  int shards = 1;  // sparse cores of all devices
  int sparse_cores_per_device = 1;
  // "auto" stacks no more tables than have room for their activations in one sparse core: padded
  // dim * 4 bytes for each sample. A table that is too large alone stays alone.
  int64_t activation_mem_bytes_limit = 2 << 20;
};

// The next multiples of 8, and of 8 for each shard.
int64_t padded_dim(int64_t dim);
int64_t padded_vocabulary_size(int64_t vocabulary_size, int shards);

// One table of a stack.
struct StackMember {
  int table = 0;  // its position among the tables given
  std::string name = {};
  int64_t vocabulary_size = 0, dim = 0;
  int64_t padded_vocabulary_size = 0;
  int64_t shard_row = 0;  // where it begins in every shard
  int rotation = 0;       // of its rows over the shards, so that low ids of all tables spread
};

// Tables one below the other in every shard. Id i of a member lives on shard
// (i mod shards + rotation) mod shards, in row shard_row + i div shards. A stack of one table is
// that table, without padding.
struct TableStack {
  std::string name = {};  // the members' names joined by '_'
  int shards = 1;
  int64_t dim = 0;              // of all, padded
  int64_t vocabulary_size = 0;  // of all, padded
  std::vector<StackMember> members = {};

  struct Place {
    const StackMember* member;
    int64_t id;
  };
  struct RowRange {
    int64_t begin = 0, end = 0;
  };

  int shard(const StackMember& member, int64_t id) const {
    return static_cast<int>((id % shards + member.rotation) % shards);
  }
  int64_t local_row(const StackMember& member, int64_t id) const {
    return member.shard_row + id / shards;
  }
  // The row of the stack as one table whose rows are dealt to the shards in turn.
  int64_t row(const StackMember& member, int64_t id) const {
    return local_row(member, id) * shards + shard(member, id);
  }
  // Whose row it is; nothing for padding.
  std::optional<Place> find(int64_t row) const;

  // The rows that hold ids [begin, end) of a member: whole groups of `shards` rows, which lie
  // together.
  RowRange rows_of(const StackMember& member, int64_t begin, int64_t end) const;
  // The values of ids [begin, end), [end - begin, member.dim], out of those rows, [n, dim]; and
  // back into them.
  void unstack(const StackMember& member, int64_t begin, int64_t end, const float* rows,
               float* out) const;
  void stack(const StackMember& member, int64_t begin, int64_t end, const float* values,
             float* rows) const;
};

// Every table is in exactly one stack. "auto" stacks tables of equal padded dim, optimizer and
// combiner, in the order of their names, each into the first stack that has room; tables whose
// optimizer has a rule, slots or a width of the user's stay alone.
// ValueError for a list that names a table twice, one that another list has, or one that is not
// there, and for a list of tables that differ in padded dim, optimizer or combiner.
std::vector<TableStack> stack_tables(const std::vector<StackableTable>& tables,
                                     const TableStacking& stacking, const StackingOptions& options);

}  // namespace keel
