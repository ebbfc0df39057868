#include "layers/core/flatten.h"

#include "autodiff/ops.h"

namespace keel {

Tensor FlattenLayer::call(const Tensor& x, const CallContext&) {
  if (x.rank() == 0) throw ValueError("Flatten ", name(), ": needs a batch dimension");
  const Shape row = x.shape().without(0);
  const Shape flat = {x.dim(0), row.fully_defined() ? row.size() : kUnknown};
  // Reshaping finds out one dimension only; a spec may leave both open.
  if (x.is_symbolic()) return Tensor::symbolic({.shape = flat, .dtype = x.dtype()});
  return ops::reshape(x, flat);
}

}  // namespace keel
