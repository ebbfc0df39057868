// The dtypes in which a layer computes: of its inputs, of ids, and of the operands of its products.
#pragma once

#include <string>

#include <keel/autodiff/internal/autocast.h>
#include <keel/autodiff/ops.h>
#include <keel/framework/config/dtype_policy.h>
#include <keel/framework/exact_cast.h>

namespace keel {

// Returns `x` converted to `dtype`, or `x` itself if it already has this dtype.
inline Tensor as_dtype(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : ops::cast(x, dtype);
}

// Returns ids of a floating dtype as int64, and other ids unchanged. Throws InvalidIdError, which
// starts with `class_name` and the name of the layer, for an id that is not an integer.
inline Tensor as_ids(const char* class_name, const std::string& name, const Tensor& ids) {
  if (!is_floating(ids.dtype())) return ids;
  if (ids.is_symbolic()) return ops::cast(ids, DType::kInt64);
  return integer_ids(str(class_name, ' ', name), ids);
}

// Returns how the matrix products of a layer with this policy read their operands.
inline ProductOperands product_operands(const DTypePolicy& policy) {
  if (policy.bfloat16_products()) return ProductOperands::kBFloat16;
  return policy.float16_products() ? ProductOperands::kFloat16 : ProductOperands::kUnchanged;
}

}  // namespace keel
