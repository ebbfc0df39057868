#include <keel/layers/activation/activation.h>
#include <keel/layers/activations.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {

Tensor ELULayer::call(const Tensor& input, const CallContext&) {
  const Tensor x = is_floating(input.dtype()) ? input : as_dtype(input, dtype());
  return activations::elu(x, options_.alpha);
}

std::optional<PlanValues> ELULayer::plan(Planner& planner, const PlanValues& inputs) const {
  const auto x = planner.rows(inputs);
  if (!x) return {};
  return planner.map((*x)[0], {RowFunction::Kind::kElu, options_.alpha});
}

KEEL_REGISTER(Layer, ELULayer, .package = "keras")

}  // namespace keel
