#include <algorithm>
#include <cstring>

#include <keel/layers/serving/steps/plan_step.h>

namespace keel {
namespace {

const char* name_of(Layout layout) {
  constexpr const char* kNames[] = {"dense", "ragged", "sparse"};
  return kNames[static_cast<size_t>(layout)];
}

Tensor copied(const void* data, const Shape& shape, DType dtype) {
  if (dtype == DType::kString) {
    return Tensor::from(std::span(static_cast<const std::string*>(data), shape.size()), shape);
  }
  Tensor out = Tensor::uninitialized(shape, dtype);
  const std::span<std::byte> bytes = out.mutable_raw();
  if (!bytes.empty()) std::memcpy(bytes.data(), data, bytes.size());
  return out;
}

// Checks that the sizes of a view match its shape, before its data is read.
void check_size(const std::string& caller, const TensorView& view) {
  const Shape& shape = view.shape;
  if (!shape.fully_defined())
    throw ValueError(caller, ": shape must be fully defined, received ", shape);
  const auto check = [&](const char* what, int64_t needed, int64_t received) {
    if (received == needed) return;
    throw ValueError(caller, ": shape ", shape, " has ", needed, " ", what,
                     ", but TensorView::", what, " is ", received);
  };
  const auto check_count = [&](const char* what, int64_t received) {
    if (received < 0) throw ValueError(caller, ": TensorView::", what, " is ", received);
  };
  const int64_t rows = shape.rank() == 0 ? 0 : shape[0];
  switch (view.layout) {
    case Layout::kDense:
      check("rows", rows, view.rows);
      return check("values", shape.size(), view.values);
    case Layout::kRagged:
      check_count("rows", view.rows);
      return check("values", rows, view.values);
    case Layout::kSparse:
      check("rows", rows, view.rows);
      return check_count("values", view.values);
  }
}

void check_ragged(const std::string& caller, const TensorView& view) {
  const int64_t* const splits = view.row_splits;
  if (splits == nullptr) throw ValueError(caller, ": a ragged tensor requires row_splits");
  if (splits[0] != 0 || splits[view.rows] != view.values) {
    throw ValueError(caller, ": row_splits must run from 0 to ", view.values, ", received ",
                     splits[0], " to ", splits[view.rows]);
  }
  const int64_t* const end = splits + view.rows + 1;
  if (const int64_t* const at = std::is_sorted_until(splits, end); at != end) {
    throw ValueError(caller, ": row_splits must not decrease, received ", *(at - 1), " before ",
                     *at);
  }
}

void check_sparse(const std::string& caller, const TensorView& view) {
  if (view.values > 0 && view.indices == nullptr) {
    throw ValueError(caller, ": a sparse tensor requires indices");
  }
  const int rank = view.shape.rank();
  const int64_t* index = view.indices;
  for (int64_t i = 0; i < view.values; ++i, index += rank) {
    for (int axis = 0; axis < rank; ++axis) {
      if (index[axis] < 0 || index[axis] >= view.shape.dims()[axis]) {
        throw ValueError(caller, ": index ", index[axis], " of entry ", i,
                         " is out of range for dimension ", axis, " of ", view.shape,
                         "; indices must be in [0, dimension)");
      }
    }
    if (i > 0 && std::lexicographical_compare(index, index + rank, index - rank, index)) {
      throw ValueError(caller, ": indices must be in row-major order, but entry ", i,
                       " is not; sort the entries");
    }
  }
}

const void* bytes_of(const Tensor& values) {
  if (values.dtype() == DType::kString) return values.data<std::string>().data();
  return values.raw().data();
}

}  // namespace

TensorView view_of(const TensorLike& tensor) {
  const Tensor& values = tensor.values();
  TensorView out = {.layout = tensor.layout(),
                    .dtype = values.dtype(),
                    .shape = values.shape(),
                    .data = bytes_of(values),
                    .values = values.shape().rank() == 0 ? 1 : values.dim(0)};
  switch (tensor.layout()) {
    case Layout::kDense:
      out.values = values.size();
      out.rows = values.rank() == 0 ? 0 : values.dim(0);
      break;
    case Layout::kRagged:
      out.row_splits = tensor.ragged().row_splits.data<int64_t>().data();
      out.rows = tensor.ragged().rows();
      break;
    case Layout::kSparse:
      out.shape = tensor.sparse().dense_shape;
      out.indices = tensor.sparse().indices.data<int64_t>().data();
      out.rows = out.shape[0];
      break;
  }
  return out;
}

TensorLike copy_of(const TensorView& view) {
  switch (view.layout) {
    case Layout::kDense:
      break;
    case Layout::kRagged:
      return RaggedTensor{copied(view.data, view.shape, view.dtype),
                          copied(view.row_splits, {view.rows + 1}, DType::kInt64)};
    case Layout::kSparse:
      return SparseTensor{copied(view.indices, {view.values, view.shape.rank()}, DType::kInt64),
                          copied(view.data, {view.values}, view.dtype), view.shape};
  }
  return copied(view.data, view.shape, view.dtype);
}

void check_view(const std::string& caller, const TensorSpec& spec, const TensorView& view) {
  if (view.layout != spec.layout) {
    throw TypeError(caller, " must be ", name_of(spec.layout), ", received a ",
                    name_of(view.layout), " tensor");
  }
  if (view.dtype != spec.dtype) {
    throw TypeError(caller, " must be ", spec.dtype, ", received ", view.dtype);
  }
  const bool ragged = spec.layout == Layout::kRagged;
  const bool fits =
      ragged ? view.shape.rank() + 1 == spec.shape.rank() : compatible(spec.shape, view.shape);
  if (!fits) {
    throw ValueError(caller, " must have shape ", spec.shape, ", received ",
                     ragged ? "values of " : "", view.shape);
  }
  check_size(caller, view);
  if (view.data == nullptr && view.values > 0)
    throw ValueError(caller, ": TensorView::data must not be null");
  if (ragged) check_ragged(caller, view);
  if (spec.layout == Layout::kSparse) check_sparse(caller, view);
}

}  // namespace keel
