// How layers bring their inputs to the dtype they compute in.
#pragma once

#include <keel/autodiff/ops.h>

namespace keel {

inline Tensor as_dtype(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : ops::cast(x, dtype);
}

}  // namespace keel
