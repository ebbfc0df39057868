// How far two tensors are from each other.
#pragma once

#include <string>

#include <keel/framework/tensor_like.h>

namespace keel::tool {

struct Difference {
  int64_t count = 0;    // elements that differ by more than is allowed
  double largest = 0;   // of all elements; infinite where one is NaN and the other is not
  std::string at = {};  // its place, "[3, 0]"; empty if none differs
};

// |a - b| <= atol + rtol |b| is allowed. NaN equals NaN; strings are equal or infinitely far. The
// tensors have one shape; their dtypes may be two, but both numbers or both strings (TypeError).
Difference difference(const Tensor& a, const Tensor& b, double atol, double rtol = 0);

// How the structures of two tensors differ, apart from their values: "" if they do not, else
// "ragged, expected dense", or how row_splits, indices or dense_shape do.
std::string structure_difference(const TensorLike& a, const TensorLike& b);

}  // namespace keel::tool
