// Products of keras.ops. Operands get their common dtype.
#pragma once

#include <string>

#include <keel/autodiff/keras_ops/operand.h>

namespace keel::keras_ops {

// Multiplies matrices, or vectors as rows and columns. Leading axes broadcast.
Tensor matmul(const Tensor& x1, const Tensor& x2);
// Sums over the last axis of x1 and the second to last axis (or the only one) of x2. A scalar
// multiplies.
Tensor dot(const Operand& x1, const Operand& x2);
Tensor inner(const Operand& x1, const Operand& x2);  // sums over the last axes of both
Tensor outer(const Tensor& x1, const Tensor& x2);    // the products of all pairs of elements
Tensor vdot(const Tensor& x1, const Tensor& x2);     // the sum of products of flattened tensors
// Sums over the last `axes` axes of x1 and the first ones of x2, or over pairs of axes.
Tensor tensordot(const Tensor& x1, const Tensor& x2, int axes = 2);
Tensor tensordot(const Tensor& x1, const Tensor& x2,
                 const std::pair<std::vector<int>, std::vector<int>>& axes);
// Sums products of any number of operands over the labels that the result lacks. A label may occur
// twice in a term (its diagonal), and "..." stands for the remaining axes, which broadcast.
Tensor einsum(const std::string& subscripts, const std::vector<Tensor>& operands);
Tensor kron(const Tensor& x1, const Tensor& x2);  // the Kronecker product
// The cross product of vectors of 2 or 3 elements in axes axisa and axisb; `axis` sets all axes.
Tensor cross(const Tensor& x1, const Tensor& x2, int axisa = -1, int axisb = -1, int axisc = -1,
             Axis axis = {});
// The correlation of vectors; `mode` is "valid", "same" or "full".
Tensor correlate(const Tensor& x1, const Tensor& x2, const std::string& mode = "valid");
Tensor corrcoef(const Tensor& x);                // correlation coefficients of the rows
Tensor cdist(const Tensor& x, const Tensor& y);  // Euclidean distances of all pairs of rows

}  // namespace keel::keras_ops
