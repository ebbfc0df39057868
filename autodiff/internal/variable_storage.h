// Storage of the value of a variable. VariableStorage gives optimizers access to the memory of
// the value. DeferredRows is the hook through which a value whose rows lag behind is completed
// before it is read. KeyedRows is a table in place of a value.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/framework/update_rule.h>

namespace keel {

// Updates of a variable's rows that are deferred until the rows are read
// (OptimizerOptions::lazy_rows). Implementations are thread-safe.
class DeferredRows {
 public:
  virtual ~DeferredRows() = default;
  // Applies the deferred updates of the given rows. Ids that are not rows of the table are ignored.
  virtual void materialize(std::span<const int64_t> ids) = 0;
  // Applies the deferred updates of all rows.
  virtual void materialize_all() = 0;
};

// The rows of a table that keys select (a table with dynamic ids), in place of the value of a
// variable. Reading the variable gives the rows in ascending order of keys. The row ids of its
// gradients are opaque: only this object interprets them. An update consists of plan_update(),
// which may throw and changes nothing, commit_update() and finish_update(). Not thread-safe.
class KeyedRows : public DeferredRows {
 public:
  // The rows of an update, by gradient. Row i of gradient g changes row rows[g].ids[i] of the
  // memory.
  struct Update {
    std::vector<IndexedSlices> rows = {};
    void* values = nullptr;         // row 0
    std::vector<void*> slots = {};  // row 0 of each slot
    int64_t row_step = 0;           // elements from one row to the next
  };

  // Gives each row these slots. Slots of the same names keep their values.
  virtual void set_slots(const std::vector<Slot>& slots) = 0;
  // Counts and admits keys on paper. `gradients` are those of the replicas, in their order, without
  // those that are absent. Throws RuntimeError if the table is full, and for a gradient that does
  // not belong to a lookup since the last update.
  virtual void plan_update(std::vector<IndexedSlices> gradients) = 0;
  // Counts and admits keys. If `all_rows` is true, the rows of the first gradient are all rows of
  // the table, with gradient 0 for those that it does not name.
  virtual Update commit_update(bool all_rows) = 0;
  // Evicts keys.
  virtual void finish_update() = 0;
};

// The stored value of one variable: that of this replica, or the one that the replicas share.
//
// Optimizers write one shared value from several replicas between barriers. One replica makes the
// value unique first, then each replica writes its own part of the elements. Rows of elements() and
// value() may have deferred updates; Variable::read() and the assignments apply these first.
class VariableStorage {
 public:
  explicit VariableStorage(const Variable& variable) : variable_(variable) {}

  // Copies the value if another handle holds it.
  void make_unique() const;
  // The elements, writable. Throws RuntimeError unless the value is unique and contiguous.
  template <Element T>
  std::span<T> elements() const {
    return mutable_value().template mutable_data<T>();
  }

  // For optimizers that keep a value in their own memory. value() returns the stored value, which
  // may be a view (Tensor::is_view). replace() stores a tensor of the same shape and dtype instead.
  const Tensor& value() const { return mutable_value(); }
  void replace(Tensor value) const;

  // The deferred updates of the rows; null if there are none.
  void set_deferred_rows(std::shared_ptr<DeferredRows> rows) const;
  const std::shared_ptr<DeferredRows>& deferred_rows() const;
  // Applies the deferred updates of all rows.
  void materialize_all() const;
  // Returns the deferred rows if keys select the rows, else null.
  KeyedRows* keyed_rows() const;
  // Stores a value with another number of rows.
  void replace_rows(Tensor value) const;

 private:
  Tensor& mutable_value() const;
  const Variable& variable_;
};

}  // namespace keel
