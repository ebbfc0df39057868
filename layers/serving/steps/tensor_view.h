// TensorView: a non-owning view of a tensor, the input type of serving plans.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <keel/framework/tensor_like.h>

namespace keel {

// Views a dense tensor; the values of a ragged tensor with row_splits (rows + 1 numbers); or the
// values of a sparse tensor with indices (rank numbers per value).
struct TensorView {
  Layout layout = Layout::kDense;
  DType dtype = DType::kFloat32;
  Shape shape = {};  // dense and sparse: shape of the tensor; ragged: shape of the values
  const void* data = nullptr;
  // Number of values: the size of a dense tensor; the first dimension of a ragged tensor's values.
  int64_t values = 0;
  const int64_t* row_splits = nullptr;
  int64_t rows = 0;  // first dimension of the dense equivalent; 0 for a scalar
  const int64_t* indices = nullptr;
};

// Returns true if `values` and `rows` match the shape of a dense view.
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

// Returns a view that is valid as long as `tensor`. Strings are std::string objects.
TensorView view_of(const TensorLike& tensor);
// Returns a tensor with a copy of the values.
TensorLike copy_of(const TensorView& view);

// Checks a view against the spec of a plan's input; messages start with `caller`. Throws TypeError
// for another layout or dtype. Throws ValueError for
// - another shape;
// - `values` or `rows` that contradict the shape;
// - null pointers;
// - row splits that do not increase from 0 to the number of values;
// - indices outside the shape or not in row-major order.
void check_view(const std::string& caller, const TensorSpec& spec, const TensorView& view);

}  // namespace keel
