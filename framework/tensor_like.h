// TensorLike: a value that layers exchange, which is a Tensor, a RaggedTensor or a SparseTensor.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include <keel/framework/nest_functions.h>
#include <keel/framework/tensor.h>

namespace keel {

// A tensor whose rows have different lengths. Row i consists of the values at the positions
// [row_splits[i], row_splits[i + 1]).
struct RaggedTensor {
  Tensor values;      // [n] or [n, ...]
  Tensor row_splits;  // int64 [rows + 1], from 0 to n, non-decreasing

  // Makes a ragged tensor from one list of values per row.
  template <Element T>
  static RaggedTensor from_rows(const std::vector<std::vector<T>>& rows);

  int64_t rows() const { return row_splits.dim(0) - 1; }  // number of rows
  // Throws ValueError, with `caller` in the message, unless `values` and `row_splits` have the
  // dtypes, shapes and values stated above.
  void validate(const std::string& caller) const;
};

// A tensor of rank r >= 1 in coordinate form.
struct SparseTensor {
  Tensor indices;     // int64 [n, r], in row-major order
  Tensor values;      // [n]
  Shape dense_shape;  // fully defined, rank r

  // Throws ValueError, with `caller` in the message, unless the members have the dtypes and shapes
  // stated above and every index is within `dense_shape`.
  void validate(const std::string& caller) const;
};

// A dense, ragged or sparse tensor.
class TensorLike {
 public:
  // Convert a tensor of any layout.
  TensorLike(Tensor t) : value_(std::in_place_type<Tensor>, std::move(t)) {}  // NOLINT: implicit
  TensorLike(RaggedTensor t);                                                 // NOLINT: implicit
  TensorLike(SparseTensor t);                                                 // NOLINT: implicit
  ~TensorLike();
  TensorLike(const TensorLike& other);
  TensorLike(TensorLike&& other) noexcept;
  TensorLike& operator=(const TensorLike& other);
  TensorLike& operator=(TensorLike&& other) noexcept;

  // Returns the layout of the value.
  Layout layout() const { return static_cast<Layout>(value_.index()); }
  TensorSpec spec() const;   // shape of the dense equivalent, dtype of the values, and layout
  bool is_symbolic() const;  // true if the value is an output of a graph, without values
  // Returns the tensor that carries the graph identity: the dense tensor itself, or the values of a
  // ragged or sparse one.
  const Tensor& values() const;

  // Return the value in its layout. Throw TypeError if it has another layout.
  const Tensor& tensor() const;
  const RaggedTensor& ragged() const;
  const SparseTensor& sparse() const;

 private:
  std::variant<Tensor, RaggedTensor, SparseTensor> value_;
};

using Tensors = Nest<TensorLike>;  // the inputs or outputs of a layer
using Specs = Nest<TensorSpec>;    // their shapes, dtypes and layouts

// Returns the spec of every leaf.
Specs specs_of(const Tensors& tensors);
// Returns true if any leaf is symbolic.
bool any_symbolic(const Tensors& tensors);

// Returns rows [begin, end) of every leaf along its first dimension. Throws ValueError if the range
// is out of bounds.
Tensors slice_rows(const Tensors& tensors, int64_t begin, int64_t end);
TensorLike slice_rows(const TensorLike& tensor, int64_t begin, int64_t end);
// Returns the rows at the given positions, in that order. Throws ValueError if a position is out of
// range.
Tensors take_rows(const Tensors& tensors, std::span<const int64_t> rows);
// Concatenates the rows of several batches of the same structure. The dimensions of a leaf except
// the first must agree in all batches; only the last dimension of sparse leaves may differ, and the
// result has the largest one. Throws ValueError if `batches` is empty or shapes do not match, and
// TypeError if dtypes or layouts differ.
Tensors concat_rows(const std::vector<Tensors>& batches);
// Returns the length of the first dimension, which all leaves must share. Throws ValueError with
// the path of the first leaf that differs.
int64_t row_count(const Tensors& tensors);

template <Element T>
RaggedTensor RaggedTensor::from_rows(const std::vector<std::vector<T>>& rows) {
  std::vector<T> values;
  std::vector<int64_t> splits = {0};
  for (const std::vector<T>& row : rows) {
    values.insert(values.end(), row.begin(), row.end());
    splits.push_back(static_cast<int64_t>(values.size()));
  }
  const Shape shape = {static_cast<int64_t>(values.size())};
  return {Tensor::from(values, shape), Tensor::from(splits, {static_cast<int64_t>(splits.size())})};
}

}  // namespace keel

// Most sources copy and destroy these types. The code is in instantiations.cc.
extern template class keel::Nest<keel::TensorLike>;
extern template class keel::Nest<keel::TensorSpec>;
extern template std::vector<keel::TensorLike>::~vector();
extern template std::vector<keel::TensorLike>::vector(const std::vector<keel::TensorLike>& other);
extern template std::vector<keel::Tensors>::~vector();
extern template std::vector<keel::Tensors>::vector(const std::vector<keel::Tensors>& other);
extern template std::vector<keel::Specs>::~vector();
extern template std::vector<keel::Specs>::vector(const std::vector<keel::Specs>& other);
namespace keel {
extern template std::vector<TensorLike> flatten(const Nest<TensorLike>& nest);
extern template Tensors nest_internal::map_leaves(NodeView nest,
                                                  FunctionRef<TensorLike(const void*)> fn);
extern template Specs nest_internal::map_leaves(NodeView nest,
                                                FunctionRef<TensorSpec(const void*)> fn);
}  // namespace keel
