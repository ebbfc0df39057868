// Functions of functions in keras.ops: derivatives along a direction, and functions of scalars that
// are applied to the elements of tensors.
#pragma once

#include <array>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include <keel/autodiff/control_flow.h>
#include <keel/autodiff/keras_ops/shapes.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/base/function_ref.h>

namespace keel::keras_ops {

namespace internal {

// Returns J t for the gradient function u -> J^T u, which is linear, by differentiating it.
Tensor directional(FunctionRef<Tensor(const std::vector<Tensor>&)> fun,
                   const std::vector<Tensor>& primals, const std::vector<Tensor>& tangents);
// Returns the shape that the operands have together.
Shape broadcast_of(const std::vector<Tensor>& operands);

}  // namespace internal

// Returns fun(primals) and its derivative along `tangents`, which have the shapes and
// floating-point dtypes of the primals (else ValueError). fun(const std::vector<Tensor>&) returns a
// tensor. The ops in it need gradients that are themselves differentiable with respect to the
// gradient of the result; those made of ops of keel::ops are.
template <class Function>
std::pair<Tensor, Tensor> jvp(Function&& fun, const std::vector<Tensor>& primals,
                              const std::vector<Tensor>& tangents) {
  return {fun(primals), internal::directional(fun, primals, tangents)};
}

// Returns a function of tensors that applies `pyfunc` to scalars: it broadcasts its arguments,
// calls pyfunc for each element, and stacks the results.
template <class Function>
auto vectorize(Function pyfunc) {
  return [pyfunc](const auto&... operands) -> Tensor {
    const ControlFlowScope scope;
    const std::vector<Tensor> all = {Tensor(operands)...};
    const Shape shape = internal::broadcast_of(all);
    std::vector<std::vector<Tensor>> elements;
    for (const Tensor& x : all) elements.push_back(unstack(ravel(broadcast_to(x, shape))));
    std::vector<Tensor> out;
    for (int64_t i = 0; i < shape.size(); ++i) {
      size_t next = 0;
      // The elements of a braced list are evaluated from left to right.
      const std::array<Tensor, sizeof...(operands)> scalars = {
          ((void)operands, elements[next++][i])...};
      out.push_back(std::apply(pyfunc, scalars));
    }
    return reshape(stack(out), shape);
  };
}

}  // namespace keel::keras_ops
