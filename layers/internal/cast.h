// Converts layer inputs to the dtype in which the layer computes.
#pragma once

#include <keel/autodiff/ops.h>

namespace keel {

// Returns `x` converted to `dtype`, or `x` itself if it already has this dtype.
inline Tensor as_dtype(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : ops::cast(x, dtype);
}

}  // namespace keel
