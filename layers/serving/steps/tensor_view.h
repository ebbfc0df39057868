// TensorView: the values of a tensor that somebody else keeps, as plans for serving take them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <keel/framework/tensor_like.h>

namespace keel {

// A dense tensor; the values of a ragged one with row_splits, rows + 1 numbers; or those of a
// sparse one with indices, rank numbers for each.
struct TensorView {
  Layout layout = Layout::kDense;
  DType dtype = DType::kFloat32;
  Shape shape = {};  // dense and sparse: of the tensor; ragged: of its values
  const void* data = nullptr;
  int64_t values = 0;  // how many: the size of a dense tensor; of a ragged one, those of its rows
  const int64_t* row_splits = nullptr;
  int64_t rows = 0;  // first dimension of the dense equivalent, that of `shape`; 0 for a scalar
  const int64_t* indices = nullptr;
};

// Whether `values` and `rows` are those of `shape`: of a dense tensor.
inline bool is_whole(const TensorView& view) {
  const std::span<const int64_t> dims = view.shape.dims();
  uint64_t size = 1;
  bool known = true;
  for (int64_t dim : dims) {
    known = known && dim >= 0;
    size *= static_cast<uint64_t>(dim);
  }
  return known && static_cast<uint64_t>(view.values) == size &&
         view.rows == (dims.empty() ? 0 : dims[0]);
}

// It lives as long as the tensor. Strings are std::string.
TensorView view_of(const TensorLike& tensor);
// A tensor of the same values.
TensorLike copy_of(const TensorView& view);

// What a plan's input of this spec asks: TypeError for another layout or dtype; ValueError for
// another shape, numbers of rows and values that are not those of the shape, null pointers, row
// splits that do not run from 0 to the number of values, and indices outside the shape or not in
// row-major order. `caller` begins the messages.
void check_view(const std::string& caller, const TensorSpec& spec, const TensorView& view);

}  // namespace keel
