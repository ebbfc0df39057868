// Differentiable functions of tensors. All accept symbolic tensors.
//
// Floating-point functions take float32 and float64. Operands must have the same dtype (TypeError
// otherwise). Axes may be negative. Sums use one fixed order for any number of worker threads, so
// their bits do not depend on it. Incompatible shapes throw a ValueError that names the function
// and the shapes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/framework/base/combiner.h>
#include <keel/framework/tensor.h>

namespace keel::ops {

// Combiner selects the divisor of the sum in embedding_pool(): kSum, kMean or kSqrtN.
using kernels::Combiner;

// ---- Elementwise functions of numeric dtypes. Two operands broadcast as in NumPy.

Tensor add(const Tensor& a, const Tensor& b);            // a + b
Tensor subtract(const Tensor& a, const Tensor& b);       // a - b
Tensor multiply(const Tensor& a, const Tensor& b);       // a * b
Tensor divide(const Tensor& a, const Tensor& b);         // a / b, floating-point
Tensor divide_no_nan(const Tensor& a, const Tensor& b);  // floating-point; 0 where b is 0
// The greater and the smaller of a and b. Where they are equal, each gets half of the gradient.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor pow(const Tensor& a, const Tensor& b);  // a^b, floating-point
Tensor scale(const Tensor& x, double factor);  // x * factor
Tensor shift(const Tensor& x, double offset);  // x + offset
Tensor negative(const Tensor& x);              // -x
Tensor abs(const Tensor& x);                   // |x|; the gradient is sign(x)
Tensor sign(const Tensor& x);                  // -1, 0 or 1; no gradient
Tensor square(const Tensor& x);                // x * x

// The functions from here to clip_by_value() take floating-point dtypes only.

Tensor sqrt(const Tensor& x);      // the square root
Tensor rsqrt(const Tensor& x);     // 1 / sqrt(x)
Tensor exp(const Tensor& x);       // e^x
Tensor log(const Tensor& x);       // the natural logarithm
Tensor log1p(const Tensor& x);     // log(1 + x), exact for small x
Tensor erf(const Tensor& x);       // the error function
Tensor tanh(const Tensor& x);      // the hyperbolic tangent
Tensor sigmoid(const Tensor& x);   // 1 / (1 + e^-x)
Tensor softplus(const Tensor& x);  // log(1 + e^x), without overflow
Tensor relu(const Tensor& x);      // max(x, 0); the gradient is 0 at 0
Tensor floor(const Tensor& x);     // the greatest integer <= x; no gradient
// Clips x to [low, high]. The gradient is 1 inside and at the bounds, 0 outside.
Tensor clip_by_value(const Tensor& x, double low, double high);
// Converts x to `dtype`. It has a gradient only between floating-point dtypes.
Tensor cast(const Tensor& x, DType dtype);

// ---- Comparisons and selection. Operands broadcast; conditions have no gradient.

// Compare numbers and return bool. equal() and not_equal() also take bool, int8 and string.
Tensor equal(const Tensor& a, const Tensor& b);
Tensor not_equal(const Tensor& a, const Tensor& b);
Tensor greater(const Tensor& a, const Tensor& b);
Tensor greater_equal(const Tensor& a, const Tensor& b);
Tensor less(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, const Tensor& b);
// Combine bool tensors.
Tensor logical_not(const Tensor& x);
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
// Returns a where the bool `condition` is true, and b elsewhere. All three broadcast.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor is_nan(const Tensor& x);  // bool; true where the floating-point x is NaN

// ---- Identity and constants.

// Returns x as a constant: no gradient reaches x.
Tensor stop_gradient(const Tensor& x);
Tensor ones_like(const Tensor& x);   // a constant with the spec of x, without gradient
Tensor zeros_like(const Tensor& x);  // a constant with the spec of x, without gradient

// ---- Reductions over `axes`, or over all axes if it is empty. With keepdims, the reduced axes
// stay with dimension 1.

// The sum and the arithmetic mean of the elements.
Tensor sum(const Tensor& x, const std::vector<int>& axes = {}, bool keepdims = false);
Tensor mean(const Tensor& x, const std::vector<int>& axes = {}, bool keepdims = false);
// The greatest and the smallest element. The gradient is divided evenly among the elements that
// attain it.
Tensor max(const Tensor& x, const std::vector<int>& axes = {}, bool keepdims = false);
Tensor min(const Tensor& x, const std::vector<int>& axes = {}, bool keepdims = false);
Tensor argmax(const Tensor& x, int axis = -1);  // int64; the first index of equal ones or NaN

// ---- Shapes.

// Returns the elements of x, row-major, in another shape of the same size. At most one dimension of
// `shape` may be kUnknown; it is computed from the size of x.
Tensor reshape(const Tensor& x, const Shape& shape);
// Inserts a dimension of size 1 at `axis`.
Tensor expand_dims(const Tensor& x, int axis);
Tensor squeeze(const Tensor& x, int axis);  // throws ValueError unless that dimension is 1
// Reorders the axes by `permutation`, or reverses them if it is empty.
Tensor transpose(const Tensor& x, const std::vector<int>& permutation = {});
// Repeats x as NumPy does; dimensions of `shape` may be kUnknown where x has them.
Tensor broadcast_to(const Tensor& x, const Shape& shape);
Tensor sum_to(const Tensor& x, const Shape& shape);  // the transpose (adjoint) of broadcast_to
// Joins tensors along an existing axis (concat) or along a new one (stack).
Tensor concat(const std::vector<Tensor>& parts, int axis = -1);
Tensor stack(const std::vector<Tensor>& parts, int axis = 0);
// Returns the elements [begin, begin + size) along `axis`; size kUnknown selects the rest.
Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t size);
// Adds zeros before and after x along `axis`. It is the transpose (adjoint) of slice.
Tensor pad(const Tensor& x, int axis, int64_t before, int64_t after);
// Splits x into `parts` tensors of equal size along `axis`.
std::vector<Tensor> split(const Tensor& x, int64_t parts, int axis = -1);

// ---- Products.

// Multiplies matrices: [..., m, k] x [..., k, n] -> [..., m, n]. transpose_a and transpose_b swap
// the last two axes of that operand first. Both operands have rank 2, or both have the same rank
// and equal leading dimensions, or b has rank 2 and a has any rank.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);
// Returns x . kernel + bias, passed through relu if `relu`, in one pass over the output. x has
// shape [..., k], kernel [k, n], bias [n], the result [..., n]; an empty handle means no bias. The
// result has the same bits as matmul, add and relu in sequence.
Tensor dense(const Tensor& x, const Tensor& kernel, const Tensor& bias = {}, bool relu = false);
// Sums products over the labels that the result lacks, e.g. "abc,cd->abd". Each axis has a letter
// that occurs once in its term. "..." stands for the remaining axes, which the result has too.
Tensor einsum(const std::string& equation, const Tensor& a, const Tensor& b);
// Returns, for x of shape [batch, features, dim], the dot products x_i . x_j of the pairs i > j
// (i >= j if self_interaction) in the order (1,0), (2,0), (2,1), ... The result has shape
// [batch, pairs] (DLRM, Naumov et al. 2019).
Tensor dot_interaction(const Tensor& x, bool self_interaction = false);
// Returns the same products for a list of features of shape [batch, dim], without stacking them.
Tensor dot_interaction(const std::vector<Tensor>& features, bool self_interaction = false);

// ---- Table rows. Ids are int32 or int64. An id outside the table throws a ValueError naming it.

// Returns params[ids] along axis 0: ids [...] -> [..., dims of a row]. The gradient is
// IndexedSlices.
Tensor gather(const Tensor& params, const Tensor& ids);
// Looks up rows of int8 codes [rows, dim] that have one float32 scale per row [rows], and returns
// them as float32: codes[id] / scales[id] (framework/internal/quantizers.h), ids [...] -> [...,
// dim]. It has no gradient.
Tensor gather_quantized(const Tensor& codes, const Tensor& scales, const Tensor& ids);
// Pools table rows per sample of a ragged batch: ids [n] and row_splits int64 [batch + 1] ->
// [batch, dim]. `weights` is float32 [n], or an empty handle for ones. kSum, kMean and kSqrtN
// divide the weighted sum by 1, by sum(w) and by sqrt(sum(w^2)). Empty samples and zero divisors
// give zeros. The gradient of the table is IndexedSlices; the weights have none.
Tensor embedding_pool(const Tensor& table, const Tensor& ids, const Tensor& row_splits,
                      const Tensor& weights, Combiner combiner);
// Sums the rows of `values` [n, dim...] into zeros of `shape` at `ids` [n]. It is the transpose
// (adjoint) of gather.
Tensor scatter_sum(const Tensor& ids, const Tensor& values, const Shape& shape);
// Returns ids [...] as one-hot vectors [..., depth].
Tensor one_hot(const Tensor& ids, int64_t depth, DType dtype = DType::kFloat32);  // no gradient

// ---- Probabilities.

// e^x / sum(e^x) along `axis`, and its logarithm, without overflow.
Tensor softmax(const Tensor& x, int axis = -1);
Tensor log_softmax(const Tensor& x, int axis = -1);
// Returns max(x - t, 0) with the threshold t as Keras computes it. Let k be the number of positive
// elements in the closest distribution to x (Martins and Astudillo 2016) and c_j the sum of the j
// greatest elements of x. Keras uses t = (c_1 + ... + c_k - 1) / k, while the paper uses
// t = (c_k - 1) / k. Therefore the result sums to 1, as in the paper, only if k is 1.
Tensor sparsemax(const Tensor& x, int axis = -1);
// Returns max(z, 0) - z y + log(1 + e^-|z|) elementwise, for logits z and labels y. Both have a
// gradient.
Tensor sigmoid_cross_entropy(const Tensor& labels, const Tensor& logits);

}  // namespace keel::ops

namespace keel {

// Shorthand for the functions of keel::ops of the same meaning.
inline Tensor operator+(const Tensor& a, const Tensor& b) { return ops::add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return ops::subtract(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return ops::multiply(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return ops::divide(a, b); }
inline Tensor operator-(const Tensor& x) { return ops::negative(x); }
inline Tensor operator*(const Tensor& x, double k) { return ops::scale(x, k); }
inline Tensor operator*(double k, const Tensor& x) { return ops::scale(x, k); }
inline Tensor operator/(const Tensor& x, double k) { return ops::scale(x, 1 / k); }
inline Tensor operator+(const Tensor& x, double k) { return ops::shift(x, k); }
inline Tensor operator-(const Tensor& x, double k) { return ops::shift(x, -k); }

}  // namespace keel
