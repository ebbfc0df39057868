#include <keel/layers/regularization/activity_regularization.h>

#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/plan_step.h>

namespace keel {

std::optional<PlanValues> ActivityRegularizationLayer::plan(Planner&,
                                                            const PlanValues& inputs) const {
  return inputs;
}

KEEL_REGISTER(Layer, ActivityRegularizationLayer)

}  // namespace keel
