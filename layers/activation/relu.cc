#include <keel/layers/activation/activation.h>
#include <keel/layers/activations.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {

ReLULayer::ReLULayer(Options options) : OptionsLayer(kClassName, std::move(options)) {
  const auto check = [this](const char* option, double value) {
    if (value >= 0) return;
    throw ValueError("ReLU ", name(), ": ", option, " must not be negative, received ", value);
  };
  check("max_value", options_.max_value.value_or(0));
  check("negative_slope", options_.negative_slope);
  check("threshold", options_.threshold);
}

Tensor ReLULayer::call(const Tensor& input, const CallContext&) {
  const Tensor x = is_floating(input.dtype()) ? input : as_dtype(input, dtype());
  return activations::relu(x, options_.negative_slope, options_.max_value, options_.threshold);
}

std::optional<PlanValues> ReLULayer::plan(Planner& planner, const PlanValues& inputs) const {
  if (options_.max_value || options_.negative_slope != 0 || options_.threshold != 0) return {};
  const auto x = planner.rows(inputs);
  if (!x) return {};
  return planner.map((*x)[0], RowFunction::Kind::kRelu);
}

KEEL_REGISTER(Layer, ReLULayer, .package = "keras")

}  // namespace keel
