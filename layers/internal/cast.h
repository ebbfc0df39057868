// The dtypes in which a layer computes: of its inputs, and of the operands of its products.
#pragma once

#include <keel/autodiff/internal/autocast.h>
#include <keel/autodiff/ops.h>
#include <keel/framework/config/dtype_policy.h>

namespace keel {

// Returns `x` converted to `dtype`, or `x` itself if it already has this dtype.
inline Tensor as_dtype(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : ops::cast(x, dtype);
}

// Returns how the matrix products of a layer with this policy read their operands.
inline ProductOperands product_operands(const DTypePolicy& policy) {
  if (policy.bfloat16_products()) return ProductOperands::kBFloat16;
  return policy.float16_products() ? ProductOperands::kFloat16 : ProductOperands::kUnchanged;
}

}  // namespace keel
