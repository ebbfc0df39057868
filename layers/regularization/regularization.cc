#include <keel/layers/regularization/regularization.h>

#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/plan_step.h>

namespace keel {

void NoiseLayer::build_weights(const TensorSpec&) { add_state(random_.make_state()); }

Tensor NoiseLayer::call(const Tensor& x, const CallContext& context) {
  if (!context.training || !is_noisy()) return x;
  if (!is_floating(x.dtype())) {
    throw TypeError(caller(), ": input must be float32 or float64, received ", x.dtype());
  }
  return x.is_symbolic() ? Tensor::symbolic(x.spec()) : perturb(x, random_.next());
}

std::optional<PlanValues> NoiseLayer::plan(Planner&, const PlanValues& inputs) const {
  return inputs;
}

std::optional<PlanValues> ActivityRegularizationLayer::plan(Planner&,
                                                            const PlanValues& inputs) const {
  return inputs;
}

KEEL_REGISTER(Layer, ActivityRegularizationLayer, .package = "keras")

}  // namespace keel
