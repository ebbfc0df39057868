#include <keel/layers/internal/cast.h>
#include <keel/layers/normalization/normalization.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {

Tensor RescalingLayer::call(const Tensor& x, const CallContext&) {
  return as_dtype(x, dtype()) * options_.scale.tensor(dtype()) + options_.offset.tensor(dtype());
}

std::optional<PlanValues> RescalingLayer::plan(Planner& planner, const PlanValues& inputs) const {
  const auto x = planner.rows(inputs, true);
  if (!x || dtype() != DType::kFloat32) return {};
  const std::optional<PlanValue> y =
      planner.affine((*x)[0], {.center = Tensor::scalar(0.0F),
                               .factor = options_.scale.tensor(dtype()),
                               .offset = options_.offset.tensor(dtype())});
  if (!y) return {};
  return *y;
}

KEEL_REGISTER(Layer, RescalingLayer, .package = "keras")

}  // namespace keel
