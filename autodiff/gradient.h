// Gradient holds nothing, a dense Tensor, or IndexedSlices (gradients of some rows of a table).
#pragma once

#include <variant>

#include <keel/framework/indexed_slices.h>

namespace keel {

// A gradient of a target with respect to one source.
class Gradient {
 public:
  Gradient() = default;                         // none: the target does not depend on the source
  Gradient(Tensor t) : value_(std::move(t)) {}  // NOLINT: implicit
  Gradient(IndexedSlices s) : value_(std::move(s)) {}  // NOLINT: implicit

  // Returns true if there is a gradient, dense or sparse.
  explicit operator bool() const { return value_.index() != 0; }
  // Returns true if the gradient is IndexedSlices.
  bool is_slices() const { return std::holds_alternative<IndexedSlices>(value_); }
  const IndexedSlices& slices() const;  // throws RuntimeError unless is_slices()
  // Returns the dense equivalent; slices are summed into zeros of shape dense_shape. Throws
  // RuntimeError if there is no gradient.
  Tensor dense() const;
  // Adds `other` to this gradient. Two sets of slices of one table are concatenated, not made
  // dense. The sum is differentiable.
  void add(const Gradient& other);

 private:
  std::variant<std::monostate, Tensor, IndexedSlices> value_;
};

}  // namespace keel
