#include <keel/autodiff/operation.h>

#include <absl/container/inlined_vector.h>
#include <algorithm>

#include <keel/autodiff/tape.h>
#include <keel/framework/base/profile.h>

namespace keel {
namespace {

Tensors list_of(std::vector<Tensor> tensors) {
  Tensors::Items items;
  for (Tensor& t : tensors) items.emplace_back(std::move(t));
  return Tensors::list(std::move(items));
}

std::vector<Tensor> leaves_of(const Tensors& tensors) {
  std::vector<Tensor> out;
  for (const TensorLike& t : flatten(tensors)) out.push_back(t.tensor());
  return out;
}

}  // namespace

std::vector<Gradient> Op::vjp(const VjpArgs&) const {
  throw NotImplementedError("GradientTape: op ", class_name(),
                            " has no gradient; define one with custom_gradient");
}

Tensors Op::replay(const Tensors& inputs, const CallOptions&) {
  return list_of(
      dispatch(std::static_pointer_cast<const Op>(shared_from_this()), leaves_of(inputs)));
}

std::vector<Tensor> dispatch(std::shared_ptr<const Op> op, std::vector<Tensor> inputs) {
  absl::InlinedVector<TensorSpec, 4> specs;
  specs.reserve(inputs.size());
  for (const Tensor& t : inputs) specs.push_back(t.spec());
  std::vector<TensorSpec> output_specs = op->infer(specs);
  if (std::ranges::any_of(inputs, &Tensor::is_symbolic)) {
    Specs::Items items(output_specs.begin(), output_specs.end());
    return leaves_of(make_outputs(std::const_pointer_cast<Op>(op), list_of(std::move(inputs)),
                                  Specs::list(std::move(items))));
  }
  std::vector<Tensor> outputs;
  {
    const profile::Scope scope(op->class_name());
    outputs = op->compute(inputs);
  }
  if (GradientTape::any_active() && op->differentiable()) {
    GradientTape::record_all(op, inputs, outputs);
  }
  return outputs;
}

}  // namespace keel
