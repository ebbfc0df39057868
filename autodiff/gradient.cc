#include "autodiff/gradient.h"

#include "autodiff/ops.h"

namespace keel {

const IndexedSlices& Gradient::slices() const {
  if (!is_slices()) throw RuntimeError("Gradient.slices: the gradient is not IndexedSlices");
  return std::get<IndexedSlices>(value_);
}

Tensor Gradient::dense() const {
  if (!*this) throw RuntimeError("Gradient.dense: there is no gradient");
  if (!is_slices()) return std::get<Tensor>(value_);
  const IndexedSlices& s = slices();
  return ops::scatter_sum(s.ids, s.values, s.dense_shape);
}

void Gradient::add(const Gradient& other) {
  if (!other) return;
  if (!*this) {
    *this = other;
  } else if (is_slices() && other.is_slices()) {
    const IndexedSlices& a = slices();
    const IndexedSlices& b = other.slices();
    value_ = IndexedSlices{.ids = ops::concat({a.ids, b.ids}, 0),
                           .values = ops::concat({a.values, b.values}, 0),
                           .dense_shape = a.dense_shape};
  } else {
    value_ = ops::add(dense(), other.dense());
  }
}

}  // namespace keel
