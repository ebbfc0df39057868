#include <keel/layers/core/identity.h>

#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/plan_step.h>

namespace keel {

std::optional<PlanValues> IdentityLayer::plan(Planner&, const PlanValues& inputs) const {
  return inputs;
}

KEEL_REGISTER(Layer, IdentityLayer)

}  // namespace keel
