// The means by which functions of keras_ops are defined: ops made from functions, elementwise
// functions given by a formula, and rearrangements given by positions.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <keel/autodiff/operation.h>
#include <keel/framework/base/function_ref.h>
#include <keel/framework/tensor.h>

namespace keel::keras_ops::internal {

// An op whose result dtypes and shapes are known when it is called.
struct FunctionOp {
  std::string name;                      // in profiles and errors
  std::vector<TensorSpec> outputs = {};  // dimensions may be unknown if an input is symbolic
  std::function<std::vector<Tensor>(std::span<const Tensor> inputs)> compute = {};
  // The gradients of the inputs; empty if the function has none.
  std::function<std::vector<Gradient>(const VjpArgs& args)> vjp = {};
};
std::vector<Tensor> call(FunctionOp op, std::vector<Tensor> inputs);
Tensor call1(FunctionOp op, std::vector<Tensor> inputs);

// An elementwise function of float32 and float64. It is computed in double and rounded once.
struct UnaryFunction {
  const char* name;
  double (*value)(double x);
  // Returns dy/dx; null if it is 0 everywhere.
  Tensor (*slope)(const Tensor& x, const Tensor& y) = nullptr;
};
// Returns f(x); integers and bools are converted to float32 first.
Tensor apply(const UnaryFunction& f, const Tensor& x);

// An elementwise function of two broadcast operands of the same dtype. Floats use the first
// formula; integers and bools use the second.
struct BinaryFunction {
  const char* name;
  double (*of_reals)(double a, double b);
  int64_t (*of_integers)(int64_t a, int64_t b) = nullptr;
  // Return the derivatives with respect to a and b; null if they are 0.
  Tensor (*slope_a)(const Tensor& a, const Tensor& b, const Tensor& y) = nullptr;
  Tensor (*slope_b)(const Tensor& a, const Tensor& b, const Tensor& y) = nullptr;
};
// Throws TypeError if the function is not defined for the dtype.
Tensor apply(const BinaryFunction& f, const Tensor& a, const Tensor& b);

// Returns, as bools, which elements have the property. The elements are converted to double.
Tensor test(const char* name, bool (*holds)(double x), const Tensor& x);

// ---- Rearrangement.

// Positions that select no element.
inline constexpr int64_t kFill = -1;

// Returns the elements of x at row-major positions, as a tensor of `shape`. kFill selects `fill`.
// The gradient of x sums over the positions.
Tensor take_flat(const Tensor& x, const std::vector<int64_t>& positions, const Shape& shape,
                 double fill = 0);
// Like take_flat(), with the positions computed by `source` from the index of a result element.
using Source = FunctionRef<int64_t(const std::vector<int64_t>& index)>;
Tensor remap(const Tensor& x, const Shape& shape, Source source, double fill = 0);
// The transpose (adjoint) of take_flat(): sums the elements of x into zeros of `shape` at
// positions.
Tensor scatter_flat(const Tensor& x, const std::vector<int64_t>& positions, const Shape& shape);
// Returns the row-major strides of a shape.
std::vector<int64_t> strides_of(const Shape& shape);
// Calls fn(index) for each index of a shape in row-major order.
void for_each_index(const Shape& shape, FunctionRef<void(const std::vector<int64_t>&)> fn);

// Returns the values as doubles, whatever their dtype. Throws RuntimeError for a symbolic tensor.
std::vector<double> doubles_of(const Tensor& x);
// Returns the values as integers. Throws ValueError, which starts with `caller`, for other numbers.
std::vector<int64_t> integers_of(const std::string& caller, const Tensor& x);
// Returns ids as int64, as integer_ids() does when the tensor has values.
Tensor ids_of(const char* caller, const Tensor& x);

// Returns x with `axes` moved to the end, in order, and flattened to one axis: [rest ..., n].
Tensor flatten_axes(const Tensor& x, const std::vector<int>& axes);
// Returns the shape of x after a reduction over `axes`.
Shape reduced(const Shape& x, const std::vector<int>& axes, bool keepdims);

}  // namespace keel::keras_ops::internal
