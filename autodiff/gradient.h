// Gradient: nothing, a dense Tensor, or rows of a table.
#pragma once

#include <variant>

#include <keel/framework/indexed_slices.h>

namespace keel {

class Gradient {
 public:
  Gradient() = default;                         // none: the target does not depend on the source
  Gradient(Tensor t) : value_(std::move(t)) {}  // NOLINT: implicit
  Gradient(IndexedSlices s) : value_(std::move(s)) {}  // NOLINT: implicit

  explicit operator bool() const { return value_.index() != 0; }
  bool is_slices() const { return std::holds_alternative<IndexedSlices>(value_); }
  const IndexedSlices& slices() const;  // RuntimeError unless is_slices()
  // The dense equivalent; slices are summed into zeros of the table's size. RuntimeError if none.
  Tensor dense() const;
  // this += other. Two sets of slices of one table are joined, not densified. Differentiable.
  void add(const Gradient& other);

 private:
  std::variant<std::monostate, Tensor, IndexedSlices> value_;
};

}  // namespace keel
