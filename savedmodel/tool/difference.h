// Compares the values and the structure of two tensors.
#pragma once

#include <string>

#include <keel/framework/tensor_like.h>

namespace keel::tool {

// The result of difference().
struct Difference {
  int64_t count = 0;    // elements that differ by more than the tolerance
  double largest = 0;   // largest difference; infinite if exactly one value is NaN
  std::string at = {};  // position of the largest difference, "[3, 0]"; empty if no element differs
};

// Compares two tensors of the same shape. The tolerance is |a - b| <= atol + rtol |b|. NaN equals
// NaN. Strings are equal or infinitely different. The dtypes may differ, but both must be numbers
// or both strings (TypeError).
Difference difference(const Tensor& a, const Tensor& b, double atol, double rtol = 0);

// Returns how the structures of two tensors differ, ignoring their values: "" if they are equal,
// else "ragged, expected dense", or the difference of row_splits, indices or dense_shape.
std::string structure_difference(const TensorLike& a, const TensorLike& b);

}  // namespace keel::tool
