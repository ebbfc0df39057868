#include "layers/activation/elu.h"

#include "layers/activations.h"
#include "layers/cast.h"
#include "layers/serving/planner.h"

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

}  // namespace keel
