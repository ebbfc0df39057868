#include <keel/autodiff/keras_ops/transforms.h>

#include <keel/autodiff/ops.h>

namespace keel::keras_ops::internal {

Tensor directional(FunctionRef<Tensor(const std::vector<Tensor>&)> fun,
                   const std::vector<Tensor>& primals, const std::vector<Tensor>& tangents) {
  if (primals.size() != tangents.size()) {
    throw ValueError("jvp: requires as many tangents as primals, received ", tangents.size(),
                     " and ", primals.size());
  }
  for (size_t i = 0; i < primals.size(); ++i) {
    if (primals[i].spec() != tangents[i].spec()) {
      throw ValueError("jvp: tangent ", i, " is ", tangents[i].dtype(), tangents[i].shape(),
                       ", its primal ", primals[i].dtype(), primals[i].shape());
    }
  }
  // The gradient J^T u is linear in u, so that its gradient along t is J t wherever u is.
  GradientTape outer;
  GradientTape inner;
  for (const Tensor& x : primals) inner.watch(x);
  const Tensor y = fun(primals);
  const Tensor u = Tensor::full<double>(y.shape(), 1).cast(y.dtype());
  outer.watch(u);
  const std::vector<Gradient> gradients = inner.input_gradient(y, primals, {.output_gradient = u});
  Tensor along;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i]) continue;
    const Tensor part = ops::sum(gradients[i].dense() * tangents[i]);
    along = along ? along + part : part;
  }
  if (!along) return ops::zeros_like(y);
  const Gradient out = outer.input_gradient(along, {u})[0];
  return out ? out.dense() : ops::zeros_like(y);
}

Shape broadcast_of(const std::vector<Tensor>& operands) {
  Shape out;
  for (const Tensor& x : operands) out = broadcast_shapes(out, x.shape(), "vectorize");
  return out;
}

}  // namespace keel::keras_ops::internal
