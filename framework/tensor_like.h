// TensorLike: what may flow between layers: a Tensor, RaggedTensor or SparseTensor.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include <keel/framework/nest.h>
#include <keel/framework/tensor.h>

namespace keel {

// Rows of different lengths: row i is values[row_splits[i], row_splits[i + 1]).
struct RaggedTensor {
  Tensor values;      // [n] or [n, ...]
  Tensor row_splits;  // int64 [rows + 1], from 0 to n, never decreasing

  // From lists of values, one per row.
  template <Element T>
  static RaggedTensor from_rows(const std::vector<std::vector<T>>& rows);

  int64_t rows() const { return row_splits.dim(0) - 1; }
  // ValueError, naming `caller`, unless values and row_splits fit each other as said above.
  void validate(const std::string& caller) const;
};

// Coordinate form of a tensor of rank r >= 1.
struct SparseTensor {
  Tensor indices;     // int64 [n, r], in row-major order
  Tensor values;      // [n]
  Shape dense_shape;  // fully defined, rank r

  // ValueError, naming `caller`, unless the parts fit each other and every index lies in the shape.
  void validate(const std::string& caller) const;
};

class TensorLike {
 public:
  TensorLike(Tensor t) : value_(std::move(t)) {}        // NOLINT: implicit
  TensorLike(RaggedTensor t) : value_(std::move(t)) {}  // NOLINT: implicit
  TensorLike(SparseTensor t) : value_(std::move(t)) {}  // NOLINT: implicit

  Layout layout() const { return static_cast<Layout>(value_.index()); }
  TensorSpec spec() const;  // of the dense equivalent, layout included
  bool is_symbolic() const;
  // The tensor that carries the graph identity: the dense one, or the values.
  const Tensor& values() const;

  const Tensor& tensor() const;        // TypeError if it is something else
  const RaggedTensor& ragged() const;  // idem
  const SparseTensor& sparse() const;  // idem

 private:
  std::variant<Tensor, RaggedTensor, SparseTensor> value_;
};

using Tensors = Nest<TensorLike>;  // what a layer takes and returns
using Specs = Nest<TensorSpec>;

Specs specs_of(const Tensors& tensors);
bool any_symbolic(const Tensors& tensors);

// Rows [begin, end) of every leaf along its first dimension.
Tensors slice_rows(const Tensors& tensors, int64_t begin, int64_t end);
TensorLike slice_rows(const TensorLike& tensor, int64_t begin, int64_t end);
// Rows chosen by position, in that order. ValueError for a position out of range.
Tensors take_rows(const Tensors& tensors, std::span<const int64_t> rows);
// The rows of several batches of one structure, one after the other. Sparse leaves must agree in
// all dimensions but the first up to their width, which becomes the largest.
Tensors concat_rows(const std::vector<Tensors>& batches);
// Length of the first dimension, which all leaves share. ValueError, with the path, if one differs.
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
