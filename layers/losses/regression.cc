#include <keel/layers/losses/regression.h>

#include <limits>
#include <numbers>

#include <keel/autodiff/ops.h>
#include <keel/framework/config/registry.h>

namespace keel {
namespace {

constexpr double kEpsilon = 1e-7;

Tensor at_least_epsilon(const Tensor& x) {
  return ops::clip_by_value(x, kEpsilon, std::numeric_limits<double>::infinity());
}

}  // namespace

namespace losses {

Tensor mean_squared_error(const Tensor& y_true, const Tensor& y_pred) {
  const auto [label, prediction] = fit_labels("mean_squared_error", y_true, y_pred);
  return ops::mean(ops::square(label - prediction), {-1});
}

Tensor mean_absolute_error(const Tensor& y_true, const Tensor& y_pred) {
  const auto [label, prediction] = fit_labels("mean_absolute_error", y_true, y_pred);
  return ops::mean(ops::abs(label - prediction), {-1});
}

Tensor mean_absolute_percentage_error(const Tensor& y_true, const Tensor& y_pred) {
  const auto [label, prediction] = fit_labels("mean_absolute_percentage_error", y_true, y_pred);
  const Tensor part = (label - prediction) / at_least_epsilon(ops::abs(label));
  return ops::scale(ops::mean(ops::abs(part), {-1}), 100);
}

Tensor mean_squared_logarithmic_error(const Tensor& y_true, const Tensor& y_pred) {
  const auto [label, prediction] = fit_labels("mean_squared_logarithmic_error", y_true, y_pred);
  const Tensor y = ops::log1p(at_least_epsilon(label));
  const Tensor p = ops::log1p(at_least_epsilon(prediction));
  return ops::mean(ops::square(y - p), {-1});
}

Tensor huber(const Tensor& y_true, const Tensor& y_pred, double delta) {
  const auto [label, prediction] = fit_labels("huber", y_true, y_pred);
  const Tensor error = ops::abs(label - prediction);
  // With c = min(e, delta), c (e - c / 2) equals both branches.
  const Tensor inner = ops::clip_by_value(error, 0, delta);
  return ops::mean(inner * (error - inner * 0.5), {-1});
}

Tensor log_cosh(const Tensor& y_true, const Tensor& y_pred) {
  const auto [label, prediction] = fit_labels("log_cosh", y_true, y_pred);
  // Computes log(cosh(e)) as e + log(1 + exp(-2 e)) - log(2), which does not overflow.
  const Tensor error = prediction - label;
  return ops::mean(error + ops::softplus(ops::scale(error, -2)) - std::numbers::ln2, {-1});
}

}  // namespace losses

Tensor MeanSquaredErrorLoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  return losses::mean_squared_error(y_true, y_pred);
}

Tensor MeanAbsoluteErrorLoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  return losses::mean_absolute_error(y_true, y_pred);
}

Tensor MeanAbsolutePercentageErrorLoss::per_sample(const Tensor& y_true,
                                                   const Tensor& y_pred) const {
  return losses::mean_absolute_percentage_error(y_true, y_pred);
}

Tensor MeanSquaredLogarithmicErrorLoss::per_sample(const Tensor& y_true,
                                                   const Tensor& y_pred) const {
  return losses::mean_squared_logarithmic_error(y_true, y_pred);
}

HuberLoss::HuberLoss(Options options) : Loss(kClassName, options), options_(std::move(options)) {
  if (!(options_.delta > 0)) {
    throw ValueError("Huber: delta must be positive, received ", options_.delta);
  }
}

Tensor HuberLoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  return losses::huber(y_true, y_pred, options_.delta);
}

Tensor LogCoshLoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  return losses::log_cosh(y_true, y_pred);
}

KEEL_REGISTER(Loss, HuberLoss)
KEEL_REGISTER(Loss, LogCoshLoss)
KEEL_REGISTER(Loss, MeanAbsoluteErrorLoss)
KEEL_REGISTER(Loss, MeanAbsolutePercentageErrorLoss)
KEEL_REGISTER(Loss, MeanSquaredErrorLoss)
KEEL_REGISTER(Loss, MeanSquaredLogarithmicErrorLoss)

}  // namespace keel
