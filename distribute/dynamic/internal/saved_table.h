// SavedTable: a saved table for unbounded ids, whose values are read when they are needed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <keel/distribute/dynamic/dynamic_rows.h>
#include <keel/framework/tensor.h>

namespace keel::distribute {

// A saved value of one element or row per id.
struct SavedPart {
  TensorSpec spec = {};
  std::string place = {};  // the file and the name of the value, for errors; empty if in memory
  std::function<Tensor(int64_t begin, int64_t end)> read = {};  // returns rows [begin, end)

  explicit operator bool() const { return read != nullptr; }
  int64_t rows() const { return spec.shape.rank() == 0 ? 0 : spec.shape[0]; }
};

// Returns a part that is in memory.
SavedPart saved_part(const Tensor& value);

// The values of a saved table; see DynamicTableState for their meaning.
struct SavedTable {
  bool by_shard = false;  // ids are in ascending order of (key shard, key), else of keys
  SavedPart keys;         // unset: row i is that of id i
  SavedPart rows;
  std::map<std::string, SavedPart> slots;  // by name; other slots get their initial values
  SavedPart count, last, born;             // unset: zeros
  SavedPart shards;  // first row of each key shard, number of rows; may be unset
  SavedPart pending_keys, pending_count, pending_last;  // unset: the pending ids stay
  std::optional<std::vector<uint8_t>> sketch;           // unset: the sketch stays
  Tensor fallback;                                      // none: the fallback rows stay
  std::map<std::string, Tensor> fallback_slots;         // by name; others get their initial values
  DynamicTableStatistics statistics = {};
  int64_t clock = 0;
  RandomStream stream = {};
};

// Returns a state as a saved table.
SavedTable saved_table(const DynamicTableState& state);

// A table that has been read and checked, but whose rows have not been read.
class PreparedTable {
 public:
  virtual ~PreparedTable() = default;
};

// The lists of ids that a checkpoint holds, and what it holds of an id besides rows.
enum class SavedIds { kRows, kPending };
enum class SavedUse { kCount, kLast, kBorn };
// The part of a list that one process writes.
struct SavedRange {
  int64_t first = 0, end = 0;  // of the ids that this process holds
  int64_t total = 0;           // number of ids in all processes
};

// What checkpoints need of a table.
class SavableTable {
 public:
  virtual ~SavableTable() = default;

  // Checkpoints hold ids in ascending order of (key shard, key). Those of a process are adjacent.
  // saved_ranges() returns the ranges of rows and of pending ids that this process holds, and
  // shard_starts() the first row of each key shard and the number of rows, int64 [1025]. Both are
  // collective. saved_order() returns the positions of the ids of this process; the functions after
  // it return what is known about ids at positions.
  virtual std::pair<SavedRange, SavedRange> saved_ranges() const = 0;
  virtual Tensor shard_starts() const = 0;
  virtual std::vector<uint32_t> saved_order(SavedIds of) const = 0;
  virtual Tensor keys_at(SavedIds of, std::span<const uint32_t> positions) const = 0;
  virtual Tensor uses_at(SavedIds of, SavedUse what, std::span<const uint32_t> positions) const = 0;
  virtual Tensor rows_at(int part, std::span<const uint32_t> positions) const = 0;
  // The cells that belong to the key shards of this process, and their range in the whole sketch.
  // Empty without a sketch.
  virtual std::pair<SavedRange, Tensor> saved_sketch() const = 0;
  // Returns the rows of all processes, those of rank 0 first. Collective.
  virtual Tensor gathered(const Tensor& mine) const = 0;
  // Returns the fallback rows, float32 [k, dim].
  virtual Tensor fallback_rows(int part) const = 0;
  // Returns a number that changes whenever ids or rows change, so that lookups know whether they
  // are stale.
  virtual int64_t version() const = 0;

  // Restoring has three steps. prepare_restore() reads the ids that this process will hold and
  // checks the saved table. Throws ValueError if this table cannot hold it, and IoError, naming the
  // value, for damage; a part without a place is a ValueError, too. replace() drops the table and
  // then reads the saved rows, so that only one of them is in memory. If reading fails, the table
  // is empty. finish_restore() evicts rows beyond the capacity. It is collective, the others are
  // not.
  virtual std::unique_ptr<PreparedTable> prepare_restore(const SavedTable& saved) const = 0;
  virtual void replace(PreparedTable& prepared) = 0;
  virtual void finish_restore() = 0;
};

}  // namespace keel::distribute
