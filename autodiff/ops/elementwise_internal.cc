#include <keel/autodiff/ops/elementwise_internal.h>

#include <keel/autodiff/ops.h>

namespace keel::ops::internal {

void FunctionTraits::check_dtype(const TensorSpec& x) const {
  if (floating) {
    check_floating(name, x);
  } else {
    check_numeric(name, x);
  }
}

std::vector<TensorSpec> Unary::infer(std::span<const TensorSpec> in) const {
  f_.check_dtype(in[0]);
  return {in[0]};
}

std::vector<Tensor> Unary::compute(std::span<const Tensor> in) const {
  const DType dtype = in[0].dtype();
  Tensor y = Tensor::uninitialized(in[0].shape(), dtype);
  f_.check_dtype({.shape = {}, .dtype = dtype});
  const size_t size = size_of(dtype);
  map(f_.loops[static_cast<size_t>(dtype)], &parameters_, in[0].raw().data(), size,
      y.mutable_raw().data(), size, in[0].size());
  return {y};
}

std::vector<Gradient> Unary::vjp(const VjpArgs& args) const {
  if (!f_.differentiable) return {Gradient()};
  const Tensor dy = args.output_gradients[0].dense();
  return {f_.gradient({args.inputs[0], args.inputs[0], args.outputs[0], dy, parameters_})};
}

std::vector<TensorSpec> Binary::infer(std::span<const TensorSpec> in) const {
  f_.check_dtype(in[0]);
  check_same_dtype(f_.name, in[0], in[1]);
  return {{.shape = broadcast_shapes(in[0].shape, in[1].shape, f_.name), .dtype = in[0].dtype}};
}

std::vector<Tensor> Binary::compute(std::span<const Tensor> in) const {
  const DType dtype = in[0].dtype();
  const Shape shape = broadcast_shapes(in[0].shape(), in[1].shape(), f_.name);
  const BroadcastPlan plan = plan_broadcast(shape, {in[0].shape(), in[1].shape()});
  Tensor y = Tensor::uninitialized(shape, dtype);
  f_.check_dtype({.shape = {}, .dtype = dtype});
  const size_t size = size_of(dtype);
  map(f_.loops[static_cast<size_t>(dtype)], nullptr, plan, in[0].raw().data(), in[1].raw().data(),
      size, y.mutable_raw().data(), size);
  return {y};
}

std::vector<Gradient> Binary::vjp(const VjpArgs& args) const {
  std::vector<Gradient> out(2);
  if (!f_.differentiable) return out;
  const Tensor dy = args.output_gradients[0].dense();
  const Values v = {args.inputs[0], args.inputs[1], args.outputs[0], dy};
  if (args.wants(0)) out[0] = f_.gradient_a(v);
  if (args.wants(1)) out[1] = f_.gradient_b(v);
  for (int i = 0; i < 2; ++i) {
    if (out[i]) out[i] = sum_to(out[i].dense(), args.input_specs[i].shape);
  }
  return out;
}

}  // namespace keel::ops::internal
