#include "layers/losses/regression.h"

#include "autodiff/ops.h"

namespace keel {
namespace losses {

Tensor mean_squared_error(const Tensor& y_true, const Tensor& y_pred) {
  const auto [label, prediction] = fit_labels("mean_squared_error", y_true, y_pred);
  return ops::mean(ops::square(label - prediction), {-1});
}

Tensor mean_absolute_error(const Tensor& y_true, const Tensor& y_pred) {
  const auto [label, prediction] = fit_labels("mean_absolute_error", y_true, y_pred);
  return ops::mean(ops::abs(label - prediction), {-1});
}

Tensor huber(const Tensor& y_true, const Tensor& y_pred, double delta) {
  const auto [label, prediction] = fit_labels("huber", y_true, y_pred);
  const Tensor error = ops::abs(label - prediction);
  // With c = min(e, delta), c (e - c / 2) is both branches at once.
  const Tensor inner = ops::clip_by_value(error, 0, delta);
  return ops::mean(inner * (error - inner * 0.5), {-1});
}

}  // namespace losses

Tensor MeanSquaredErrorLoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  return losses::mean_squared_error(y_true, y_pred);
}

Tensor MeanAbsoluteErrorLoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  return losses::mean_absolute_error(y_true, y_pred);
}

HuberLoss::HuberLoss(Options options) : Loss(kClassName, options), options_(std::move(options)) {
  if (!(options_.delta > 0)) {
    throw ValueError("Huber: delta must be positive, received ", options_.delta);
  }
}

Tensor HuberLoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  return losses::huber(y_true, y_pred, options_.delta);
}

}  // namespace keel
