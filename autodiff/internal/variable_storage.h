// Storage of the value of a variable. VariableStorage gives optimizers access to the memory of
// the value, and DeferredRows is the hook through which a value whose rows lag behind is completed
// before it is read.
#pragma once

#include <memory>
#include <span>

#include <keel/autodiff/variable.h>

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

 private:
  Tensor& mutable_value() const;
  const Variable& variable_;
};

}  // namespace keel
