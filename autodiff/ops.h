// Differentiable functions of tensors. All accept symbolic tensors.
//
// Floating functions take float32 and float64; operands must have one dtype (TypeError).
// Axes may be negative. Sums run in one fixed order for any number of workers. ValueError for
// shapes that do not fit, naming the function and both shapes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/framework/kernels/embedding/gather.h>
#include <keel/framework/tensor.h>

namespace keel::ops {

using kernels::Combiner;

// ---- Elementwise, with numpy broadcasting for two operands. Numeric dtypes.
Tensor add(const Tensor& a, const Tensor& b);
Tensor subtract(const Tensor& a, const Tensor& b);
Tensor multiply(const Tensor& a, const Tensor& b);
Tensor divide(const Tensor& a, const Tensor& b);         // floating
Tensor divide_no_nan(const Tensor& a, const Tensor& b);  // floating; 0 where b is 0
Tensor maximum(const Tensor& a, const Tensor& b);  // where equal the gradient goes half to each
Tensor minimum(const Tensor& a, const Tensor& b);  // idem
Tensor pow(const Tensor& a, const Tensor& b);      // floating
Tensor scale(const Tensor& x, double factor);      // x * factor
Tensor shift(const Tensor& x, double offset);      // x + offset
Tensor negative(const Tensor& x);
Tensor abs(const Tensor& x);   // gradient sign(x)
Tensor sign(const Tensor& x);  // no gradient
Tensor square(const Tensor& x);
// Floating only from here.
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor softplus(const Tensor& x);  // log(1 + e^x), without overflow
Tensor relu(const Tensor& x);      // gradient 0 at 0
Tensor floor(const Tensor& x);     // no gradient
// Into [low, high]; the gradient is 1 inside and at the bounds, 0 outside.
Tensor clip_by_value(const Tensor& x, double low, double high);
Tensor cast(const Tensor& x, DType dtype);  // gradient between floating dtypes only

// ---- Comparisons and choice. Results are bool; no gradients through conditions.
Tensor equal(const Tensor& a, const Tensor& b);
Tensor not_equal(const Tensor& a, const Tensor& b);
Tensor greater(const Tensor& a, const Tensor& b);
Tensor greater_equal(const Tensor& a, const Tensor& b);
Tensor less(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, const Tensor& b);
Tensor logical_not(const Tensor& x);
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);  // broadcasts all three
Tensor is_nan(const Tensor& x);

// ---- Identity.
Tensor stop_gradient(const Tensor& x);
Tensor ones_like(const Tensor& x);   // a constant
Tensor zeros_like(const Tensor& x);  // a constant

// ---- Reductions over `axes` (all of them if empty).
Tensor sum(const Tensor& x, const std::vector<int>& axes = {}, bool keepdims = false);
Tensor mean(const Tensor& x, const std::vector<int>& axes = {}, bool keepdims = false);
// Where several elements are the greatest, the gradient is divided evenly among them.
Tensor max(const Tensor& x, const std::vector<int>& axes = {}, bool keepdims = false);
Tensor min(const Tensor& x, const std::vector<int>& axes = {}, bool keepdims = false);
Tensor argmax(const Tensor& x, int axis = -1);  // int64; the first of equals

// ---- Shapes.
// One dimension of `shape` may be kUnknown: it is what is left.
Tensor reshape(const Tensor& x, const Shape& shape);
Tensor expand_dims(const Tensor& x, int axis);
Tensor squeeze(const Tensor& x, int axis);  // ValueError unless that dimension is 1
Tensor transpose(const Tensor& x, const std::vector<int>& permutation = {});  // reversed if empty
Tensor broadcast_to(const Tensor& x, const Shape& shape);
Tensor sum_to(const Tensor& x, const Shape& shape);  // transpose of broadcast_to
Tensor concat(const std::vector<Tensor>& parts, int axis = -1);
Tensor stack(const std::vector<Tensor>& parts, int axis = 0);
// Elements [begin, begin + size) along an axis; size kUnknown takes the rest.
Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t size);
// Zeros before and after along an axis: transpose of slice.
Tensor pad(const Tensor& x, int axis, int64_t before, int64_t after);
std::vector<Tensor> split(const Tensor& x, int64_t parts, int axis = -1);

// ---- Products.
// [..., m, k] x [..., k, n] -> [..., m, n], each operand's last two axes transposed first on
// request. Both of rank 2, or of one rank with equal leading dimensions, or b of rank 2 with any a.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);
// x . kernel + bias, then its positive part if `relu`, in one pass: x [..., k], kernel [k, n], bias
// [n] or an empty handle for none -> [..., n]. The bits are those of matmul, add and relu.
Tensor dense(const Tensor& x, const Tensor& kernel, const Tensor& bias = {}, bool relu = false);
// Products summed over the labels that the result lacks: "abc,cd->abd". Each axis has a letter,
// once in a term; "..." stands for the axes left over, which the result has too.
Tensor einsum(const std::string& equation, const Tensor& a, const Tensor& b);
// For x [batch, features, dim]: the products x_i . x_j of the pairs i > j (i >= j if
// self_interaction) in the order (1,0), (2,0), (2,1), ... -> [batch, pairs] (DLRM, Naumov et al.
// 2019).
Tensor dot_interaction(const Tensor& x, bool self_interaction = false);
// The same for features [batch, dim] each, which nobody has to stack.
Tensor dot_interaction(const std::vector<Tensor>& features, bool self_interaction = false);

// ---- Rows of tables. Ids int32 or int64; ValueError for an id outside the table, with the id.
// params[ids] along axis 0: ids [...] -> [..., dims of a row]. Gradient: IndexedSlices.
Tensor gather(const Tensor& params, const Tensor& ids);
// Rows of int8 codes [rows, dim] with a float32 scale each [rows], as floats: codes[id] /
// scales[id] (framework/internal/quantizers.h), ids [...] -> [..., dim]. No gradient.
Tensor gather_quantized(const Tensor& codes, const Tensor& scales, const Tensor& ids);
// Rows pooled per sample of a ragged batch: ids [n], row_splits int64 [batch + 1] -> [batch, dim];
// `weights` float32 [n], or an empty handle for ones. kSum, kMean and kSqrtN divide by 1, sum of w
// and sqrt(sum of w^2); zeros for empty samples and zero divisors. Gradients: IndexedSlices for
// the table, none for the weights.
Tensor embedding_pool(const Tensor& table, const Tensor& ids, const Tensor& row_splits,
                      const Tensor& weights, Combiner combiner);
// The sum of rows `values` [n, dim...] into zeros of `shape` at `ids` [n]: transpose of gather.
Tensor scatter_sum(const Tensor& ids, const Tensor& values, const Shape& shape);
Tensor one_hot(const Tensor& ids, int64_t depth, DType dtype = DType::kFloat32);  // no gradient

// ---- Probabilities.
Tensor softmax(const Tensor& x, int axis = -1);
Tensor log_softmax(const Tensor& x, int axis = -1);
// max(x - t, 0) with the threshold t of Keras: of the elements that are in the closest distribution
// to x (Martins and Astudillo 2016), t is (c_1 + ... + c_k - 1) / k, where c_j is the sum of the j
// greatest and k their number. The result is a distribution only if k is 1: for k > 1 the paper has
// (c_k - 1) / k, and rows sum to 1 there but not here.
Tensor sparsemax(const Tensor& x, int axis = -1);
// Elementwise max(z, 0) - z y + log(1 + e^-|z|). Gradients for logits z and labels y.
Tensor sigmoid_cross_entropy(const Tensor& labels, const Tensor& logits);

}  // namespace keel::ops

namespace keel {

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
