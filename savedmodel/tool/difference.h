// Compares the values and the structure of two tensors.
#pragma once

#include <string>

#include <keel/framework/tensor_like.h>

namespace keel::tool {

// The result of difference().
struct Difference {
  int64_t count = 0;    // number of elements that differ by more than the tolerance
  double largest = 0;   // largest difference of an element; infinite if only one value is NaN
  std::string at = {};  // index of that element, "[3, 0]"; empty if no element differs
};

// Compares all elements with the tolerance |a - b| <= atol + rtol |b|. NaN equals NaN. The
// difference of two strings is 0 or infinite. The tensors must have the same shape. Their dtypes
// may differ, but both must be numeric or both strings (TypeError otherwise).
Difference difference(const Tensor& a, const Tensor& b, double atol, double rtol = 0);

// Describes how the layouts, row_splits, indices or dense_shapes of two tensors differ, e.g.
// "ragged, expected dense". Returns an empty string if they do not differ.
std::string structure_difference(const TensorLike& a, const TensorLike& b);

}  // namespace keel::tool
