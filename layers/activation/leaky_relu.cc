#include <keel/layers/activation/activation.h>
#include <keel/layers/activations.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {

Tensor LeakyReLULayer::call(const Tensor& input, const CallContext&) {
  const Tensor x = is_floating(input.dtype()) ? input : as_dtype(input, dtype());
  return activations::leaky_relu(x, options_.negative_slope);
}

std::optional<PlanValues> LeakyReLULayer::plan(Planner& planner, const PlanValues& inputs) const {
  const auto x = planner.rows(inputs);
  if (!x) return {};
  return planner.map((*x)[0], {RowFunction::Kind::kLeakyRelu, options_.negative_slope});
}

KEEL_REGISTER(Layer, LeakyReLULayer, .package = "keras")

}  // namespace keel
