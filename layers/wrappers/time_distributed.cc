#include <keel/autodiff/ops.h>
#include <keel/layers/registry.h>
#include <keel/layers/wrappers/wrappers.h>

namespace keel {

TimeDistributedLayer::TimeDistributedLayer(Options options) : WrapperLayer(kClassName, options) {}

void TimeDistributedLayer::build_weights(const Specs& inputs) {
  TensorSpec spec = inputs.leaf();
  if (spec.shape.rank() < 3) {
    throw ValueError("TimeDistributed ", name(), ": input must be [batch, steps, ...] of rank 3 ",
                     "or more, received shape ", spec.shape);
  }
  spec.shape = spec.shape.without(1);
  build_layer(spec);
}

std::vector<Tensor> TimeDistributedLayer::compute_mask(const Tensors& inputs,
                                                       const Tensors& outputs) const {
  const Tensor mask = inputs.tensor().mask();
  if (!mask) return {};
  const Shape result = outputs.tensor().shape();
  const bool fits =
      mask.rank() <= result.rank() && compatible(mask.shape(), result.slice(0, mask.rank()));
  return {fits ? mask : Tensor()};
}

Tensors TimeDistributedLayer::call(const Tensors& inputs, const CallContext&) {
  const Tensor x = inputs.tensor();
  if (x.is_symbolic()) {
    const Tensor y = layer()(Tensor::symbolic({.shape = x.shape().without(1), .dtype = x.dtype()}));
    return Tensor::symbolic({.shape = y.shape().inserted(1, x.dim(1)), .dtype = y.dtype()});
  }
  const int64_t steps = x.dim(1);
  if (steps == 0) {
    throw ValueError("TimeDistributed ", name(),
                     ": the input has no steps; pass at least one step");
  }
  const std::vector<Tensor> parts = ops::split(x, steps, 1);
  const std::vector<Tensor> masks =
      x.mask() && x.mask().rank() > 1 ? ops::split(x.mask(), steps, 1) : std::vector<Tensor>();
  std::vector<Tensor> out;
  for (size_t t = 0; t < parts.size(); ++t) {
    const Tensor step = ops::squeeze(parts[t], 1);
    out.push_back(layer()(masks.empty() ? step : step.with_mask(ops::squeeze(masks[t], 1))));
  }
  return ops::stack(out, 1);
}

std::shared_ptr<Layer> TimeDistributedLayer::from_config(const Config& config) {
  return make_wrapper<TimeDistributedLayer>(config);
}

KEEL_REGISTER(Layer, TimeDistributedLayer, .package = "keras", .call = "inputs, training, mask")

}  // namespace keel
