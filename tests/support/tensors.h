// Makers of small tensors, and readers of their values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/framework/nest.h>
#include <keel/framework/tensor_like.h>
#include <keel/layers/layer.h>

namespace keel::testing_support {

using IdRows = std::vector<std::vector<int64_t>>;
using FloatRows = std::vector<std::vector<float>>;

// Vectors, or tensors of a shape with the values in row-major order.
Tensor floats(const std::vector<float>& values);
Tensor floats(const std::vector<float>& values, const Shape& shape);
Tensor ids(const std::vector<int64_t>& values);
Tensor ids(const std::vector<int64_t>& values, const Shape& shape);
Tensor strings(const std::vector<std::string>& values);
// One sequence of scalars: [1, values, 1].
Tensor sequence(const std::vector<float>& values);

// A float32 matrix, given by its rows.
Tensor matrix(const FloatRows& rows);
// The float32 matrix of the numbers 0, 1, 2, ... row by row.
Tensor counting(int64_t rows, int64_t dim);
// Float32 numbers of the standard normal distribution. The same seed gives the same numbers.
Tensor normal(const Shape& shape, uint64_t seed);
// Numbers of the initializer of this name, which differ in each call.
Tensor glorot_uniform(const Shape& shape);

// Returns `x`, which has shape [samples, steps, ...], with a mask of its steps, sample by sample.
Tensor with_mask(const Tensor& x, const std::vector<bool>& mask);

TensorLike ragged(const IdRows& rows);
TensorLike ragged(const FloatRows& rows);
// Sparse matrices with `width` columns. The values of a row fill its first columns.
TensorLike sparse(const IdRows& rows, int64_t width);
TensorLike sparse(const FloatRows& rows, int64_t width);
// Sparse tensors with the value values[i] at indices[i].
TensorLike sparse_at(const IdRows& indices, const std::vector<int64_t>& values, const Shape& shape);
TensorLike sparse_at(const IdRows& indices, const std::vector<float>& values, const Shape& shape);

// A gradient of rows of a matrix: row i of `values` belongs to row ids[i]. Numbers are given row by
// row.
IndexedSlices slices(const std::vector<int64_t>& ids, const Tensor& values, const Shape& shape);
IndexedSlices slices(const std::vector<int64_t>& ids, const std::vector<float>& values,
                     const Shape& shape);

// The elements of a structure with one float32 tensor, or of a float32 variable.
std::vector<float> values_of(const Tensors& tensors);
std::vector<float> values_of(const Variable& variable);
// Appends the elements of a variable, converted to float32.
void append_values(const Variable& variable, std::vector<float>& out);
// The elements of all weights of a layer or model, which are float32.
std::vector<float> weights_of(const Layer& layer);

}  // namespace keel::testing_support
