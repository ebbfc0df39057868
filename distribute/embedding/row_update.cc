#include "distribute/embedding/row_update.h"

#include <algorithm>
#include <limits>

namespace keel::distribute {
namespace {

void clip(float* values, int64_t n, const std::optional<double>& low,
          const std::optional<double>& high) {
  if (!low && !high) return;
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const auto from = static_cast<float>(low.value_or(-kNone));
  const auto to = static_cast<float>(high.value_or(kNone));
  for (int64_t i = 0; i < n; ++i) values[i] = std::min(std::max(values[i], from), to);
}

}  // namespace

void RowUpdate::apply(float* weights, float* gradient, float* const* slots, int64_t n,
                      const Step& step) const {
  clip(gradient, n, clip_gradient_min, clip_gradient_max);
  if (weight_decay_factor != 0) {
    const auto decay = static_cast<float>(
        weight_decay_factor *
        (multiply_weight_decay_factor_by_learning_rate ? step.learning_rate : 1.0));
    for (int64_t i = 0; i < n; ++i) weights[i] -= decay * weights[i];
  }
  rule->update(weights, gradient, slots, n, step);
  clip(weights, n, clip_weight_min, clip_weight_max);
}

}  // namespace keel::distribute
