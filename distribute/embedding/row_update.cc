#include <keel/distribute/embedding/row_update.h>

#include <algorithm>
#include <limits>

#include <keel/framework/kernels/update_rules/row_regularization.h>
#include <keel/framework/update_rule.h>

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

void RowUpdate::prepare(const TableRows& rows, float* gradients, const Step& step) const {
  clip(gradients, std::ssize(rows.rows) * rows.dim, clip_gradient_min, clip_gradient_max);
  if (l2 != 0) {
    for (size_t i = 0; i < rows.rows.size(); ++i) {
      kernels::add_l2_gradient(rows.values + rows.rows[i] * rows.row_step, rows.dim, l2,
                               gradients + static_cast<int64_t>(i) * rows.dim);
    }
  }
  if (weight_decay_factor == 0) return;
  const auto decay = static_cast<float>(
      weight_decay_factor *
      (multiply_weight_decay_factor_by_learning_rate ? step.learning_rate : 1.0));
  for (const int64_t row : rows.rows) {
    float* weights = rows.values + row * rows.row_step;
    for (int64_t i = 0; i < rows.dim; ++i) weights[i] -= decay * weights[i];
  }
}

void RowUpdate::clip_weights(const TableRows& rows) const {
  if (!clip_weight_min && !clip_weight_max && max_norm == 0) return;
  for (const int64_t row : rows.rows) {
    float* const weights = rows.values + row * rows.row_step;
    clip(weights, rows.dim, clip_weight_min, clip_weight_max);
    if (max_norm > 0) kernels::limit_norm(weights, rows.dim, max_norm);
  }
}

}  // namespace keel::distribute
