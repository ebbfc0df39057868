// TensorView: the values of a tensor that somebody else keeps, as plans for serving take them.
#pragma once

#include <cstdint>
#include <string>

#include "framework/tensor_like.h"

namespace keel {

// A dense tensor; the values of a ragged one with row_splits, rows + 1 numbers; or those of a
// sparse one with indices, rank numbers for each.
struct TensorView {
  Layout layout = Layout::kDense;
  DType dtype = DType::kFloat32;
  Shape shape = {};  // dense and sparse: of the tensor; ragged: of its values
  const void* data = nullptr;
  int64_t values = 0;  // how many
  const int64_t* row_splits = nullptr;
  int64_t rows = 0;  // first dimension of the dense equivalent; 0 for a scalar
  const int64_t* indices = nullptr;
};

// It lives as long as the tensor. Strings are std::string.
TensorView view_of(const TensorLike& tensor);
// A tensor of the same values.
TensorLike copy_of(const TensorView& view);

// What a plan's input of this spec asks: TypeError for another layout or dtype; ValueError for
// another shape, null pointers, row splits that do not run from 0 to the number of values, and
// indices outside the shape or not in row-major order. `who` begins the messages.
void check_view(const std::string& who, const TensorSpec& spec, const TensorView& view);

}  // namespace keel
