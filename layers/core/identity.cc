#include <keel/layers/core/core.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/plan_step.h>

namespace keel {

std::optional<PlanValues> IdentityLayer::plan(Planner&, const PlanValues& inputs) const {
  return inputs;
}

KEEL_REGISTER(Layer, IdentityLayer, .package = "keras")

}  // namespace keel
