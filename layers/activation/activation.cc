#include <keel/layers/activation/activation.h>

#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {

Tensor ActivationLayer::call(const Tensor& x, const CallContext&) {
  return options_.activation(is_floating(x.dtype()) ? x : as_dtype(x, dtype()));
}

std::optional<PlanValues> ActivationLayer::plan(Planner& planner, const PlanValues& inputs) const {
  const std::optional<RowFunction> function = RowFunction::of(options_.activation);
  if (!function) return {};
  const auto x = planner.rows(inputs);
  if (!x) return {};
  return planner.map((*x)[0], *function);
}

KEEL_REGISTER(Layer, ActivationLayer, .package = "keras")

}  // namespace keel
