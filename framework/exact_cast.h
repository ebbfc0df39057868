// Conversions to integer dtypes that throw instead of changing a number: exact_cast(), and
// integer_ids() for ids. Tensor::cast() truncates and clamps.
#pragma once

#include <string>

#include <keel/framework/tensor_like.h>

namespace keel {

// Returns the numbers converted to `dtype`, with their layout. Throws ValueError, which starts with
// `caller` and names the row, if `dtype` is an integer type that does not have one of the numbers:
// NaN, an infinity, a fraction, or a number out of its range. Converts to floats and bool as
// Tensor::cast() does. Throws TypeError to or from string.
TensorLike exact_cast(const std::string& caller, const TensorLike& numbers, DType dtype);
Tensor exact_cast(const std::string& caller, const Tensor& numbers, DType dtype);

// Returns ids as int64, with their layout. Throws InvalidIdError, which starts with `caller` and
// names the row, for an id that is NaN, infinite, a fraction or outside int64. Throws TypeError for
// strings.
TensorLike integer_ids(const std::string& caller, const TensorLike& ids);
Tensor integer_ids(const std::string& caller, const Tensor& ids);

}  // namespace keel
