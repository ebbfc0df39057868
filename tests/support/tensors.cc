#include "tests/support/tensors.h"

#include <numeric>

#include <keel/framework/initializers.h>
#include <keel/framework/random.h>

namespace keel::testing_support {
namespace {

template <class T>
Tensor vector_of(const std::vector<T>& values) {
  return Tensor::from(values, {std::ssize(values)});
}

template <class T>
TensorLike sparse_of(const IdRows& indices, const std::vector<T>& values, const Shape& shape) {
  std::vector<int64_t> flat;
  for (const auto& index : indices) flat.insert(flat.end(), index.begin(), index.end());
  const auto n = std::ssize(values);
  return SparseTensor{.indices = Tensor::from(flat, {n, shape.rank()}),
                      .values = Tensor::from(values, {n}),
                      .dense_shape = shape};
}

template <class T>
TensorLike sparse_rows(const std::vector<std::vector<T>>& rows, int64_t width) {
  IdRows indices;
  std::vector<T> values;
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t c = 0; c < rows[r].size(); ++c) {
      indices.push_back({static_cast<int64_t>(r), static_cast<int64_t>(c)});
      values.push_back(rows[r][c]);
    }
  }
  return sparse_of(indices, values, {std::ssize(rows), width});
}

}  // namespace

Tensor floats(const std::vector<float>& values) { return vector_of(values); }
Tensor floats(const std::vector<float>& values, const Shape& shape) {
  return Tensor::from(values, shape);
}
Tensor ids(const std::vector<int64_t>& values) { return vector_of(values); }
Tensor ids(const std::vector<int64_t>& values, const Shape& shape) {
  return Tensor::from(values, shape);
}
Tensor strings(const std::vector<std::string>& values) { return vector_of(values); }
Tensor sequence(const std::vector<float>& values) {
  return Tensor::from(values, {1, std::ssize(values), 1});
}

Tensor matrix(const FloatRows& rows) {
  std::vector<float> flat;
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  return Tensor::from(flat, {std::ssize(rows), std::ssize(rows.at(0))});
}

Tensor counting(int64_t rows, int64_t dim) {
  std::vector<float> values(rows * dim);
  std::iota(values.begin(), values.end(), 0.0F);
  return Tensor::from(values, {rows, dim});
}

Tensor normal(const Shape& shape, uint64_t seed) {
  Tensor out = Tensor::uninitialized(shape, DType::kFloat32);
  RandomStream{seed, 1}.normal(out.mutable_data<float>(), 0, 0, 1);
  return out;
}

Tensor glorot_uniform(const Shape& shape) { return Initializer("glorot_uniform")(shape); }

Tensor with_mask(const Tensor& x, const std::vector<bool>& mask) {
  return x.with_mask(Tensor::from<bool>(mask, {x.dim(0), x.dim(1)}));
}

TensorLike ragged(const IdRows& rows) { return RaggedTensor::from_rows(rows); }
TensorLike ragged(const FloatRows& rows) { return RaggedTensor::from_rows(rows); }
TensorLike sparse(const IdRows& rows, int64_t width) { return sparse_rows(rows, width); }
TensorLike sparse(const FloatRows& rows, int64_t width) { return sparse_rows(rows, width); }
TensorLike sparse_at(const IdRows& indices, const std::vector<int64_t>& values,
                     const Shape& shape) {
  return sparse_of(indices, values, shape);
}
TensorLike sparse_at(const IdRows& indices, const std::vector<float>& values, const Shape& shape) {
  return sparse_of(indices, values, shape);
}

IndexedSlices slices(const std::vector<int64_t>& ids, const Tensor& values, const Shape& shape) {
  return {.ids = vector_of(ids), .values = values, .dense_shape = shape};
}
IndexedSlices slices(const std::vector<int64_t>& ids, const std::vector<float>& values,
                     const Shape& shape) {
  return slices(ids, Tensor::from(values, {std::ssize(ids), shape[1]}), shape);
}

std::vector<float> values_of(const Tensors& tensors) { return tensors.tensor().to_vector<float>(); }
std::vector<float> values_of(const Variable& variable) {
  return variable.read().to_vector<float>();
}
void append_values(const Variable& variable, std::vector<float>& out) {
  const std::vector<float> values = variable.read().cast(DType::kFloat32).to_vector<float>();
  out.insert(out.end(), values.begin(), values.end());
}
std::vector<float> weights_of(const Layer& layer) {
  std::vector<float> out;
  for (const Variable& v : layer.weights()) {
    const std::vector<float> values = values_of(v);
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

}  // namespace keel::testing_support
