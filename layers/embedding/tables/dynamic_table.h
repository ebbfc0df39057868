// DynamicTable: calls between steps to a table for unbounded ids.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <keel/distribute/dynamic/dynamic_rows.h>
#include <keel/distribute/dynamic/dynamic_vocabulary.h>
#include <keel/distribute/dynamic/table_statistics.h>
#include <keel/framework/tensor.h>

namespace keel {
namespace distribute {
class KeyedTable;
}

// A handle, which layer->dynamic_table(table) returns. Ids are int64 or string tensors of rank 1,
// as the table's key type says (else ValueError). All calls throw RuntimeError inside a replica,
// and all but statistics() run pending updates first. A change to the table is seen by the next
// lookup.
class DynamicTable {
 public:
  // Gives access to the table; runs pending updates first if the argument is true. For the layers
  // that make handles.
  using Access = std::function<distribute::KeyedTable&(bool drain)>;
  // See Access.
  explicit DynamicTable(Access access) : access_(std::move(access)) {}

  const DynamicVocabulary& options() const;              // the options of the table
  int64_t dim() const;                                   // number of columns
  int64_t size() const;                                  // number of rows
  double load() const;                                   // size / capacity; NaN if unbounded
  std::vector<char> contains(const Tensor& keys) const;  // by id: 1 if it has a row
  DynamicTableStatistics statistics() const;             // the counters, without pending updates
  DynamicTableMemory memory() const;                     // the memory in bytes, of all processes

  Tensor keys() const;  // all ids that have a row, ascending
  // Return the weights, and a slot of the optimizer, of ids as float32 [n, dim]. Throw ValueError
  // naming the first id without a row, and for an unknown slot.
  Tensor rows(const Tensor& keys) const;
  Tensor slots(const std::string& name, const Tensor& keys) const;
  // Returns what the table knows about an id.
  DynamicKeyInfo info(int64_t key) const;
  DynamicKeyInfo info(const std::string& key) const;

  // Sets the weights of ids that have a row, and nothing else of them. Other ids get a row with
  // count 0 and initial slots. Throws ValueError, before any change, for repeated ids, for values
  // that are not float32 [n, dim], and if the rows exceed the capacity.
  void assign_rows(const Tensor& keys, const Tensor& values) const;
  // Removes the rows and the pending counts of ids; skips ids without. The memory of the rows is
  // overwritten.
  void erase(const Tensor& keys) const;
  // Removes the rows that the options select. Returns their number.
  int64_t prune(const PruneOptions& options) const;
  // Sets the clock of a table with Clock::kUser. Throws ValueError for another table, and if the
  // clock would go back.
  void set_clock(int64_t clock) const;
  // Registers a function that is called once after each update, prune() or erase() that removes
  // rows. It must not change the table (RuntimeError). If it throws, the step or the call fails
  // with that error, after the table has changed. With several processes, each gets the rows that
  // it holds: those of its ids in an engine, all rows of a variable.
  void on_evict(EvictionCallback callback) const;

  // Returns the whole table.
  DynamicTableState state() const;
  // Replaces the whole table. The options of this table may differ from those of the saved one. If
  // there are more rows than the capacity, the lowest ranks are evicted. Throws ValueError, without
  // a change, if they do not fit and there is no eviction policy, and for ids, rows or slots of
  // other types or sizes.
  void restore(const DynamicTableState& state) const;

 private:
  friend class SparseCore;
  distribute::KeyedTable& table(const char* caller, bool drain = true) const;

  Access access_;
};

// Additional base class of layers that own tables for unbounded ids. Model files hold their rows.
class DynamicTableOwner {
 public:
  virtual ~DynamicTableOwner() = default;
  // Returns the tables with their names, in a fixed order; empty before the layer is built.
  virtual std::vector<std::pair<std::string, DynamicTable>> dynamic_tables() const = 0;
};

}  // namespace keel
