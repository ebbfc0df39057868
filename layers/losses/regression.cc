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

Tensor one_minus(const Tensor& x) { return ops::shift(-x, 1); }

// Scales vectors to length 1. Vectors shorter than 1e-7 are divided by 1e-7.
Tensor unit(const Tensor& x, int axis) {
  const Tensor square = ops::sum(ops::square(x), {axis}, true);
  return x * ops::rsqrt(ops::clip_by_value(square, 1e-14, std::numeric_limits<double>::infinity()));
}

void check_delta(const char* caller, double delta) {
  if (!(delta > 0)) throw ValueError(caller, ": delta must be positive, received ", delta);
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
  check_delta("huber", delta);
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

Tensor cosine_similarity(const Tensor& y_true, const Tensor& y_pred, int axis) {
  const auto [label, prediction] = fit_labels("cosine_similarity", y_true, y_pred);
  return ops::negative(ops::sum(unit(label, axis) * unit(prediction, axis), {axis}));
}

Tensor dice(const Tensor& y_true, const Tensor& y_pred, const std::vector<int>& axes) {
  const auto [label, prediction] = fit_labels("dice", y_true, y_pred);
  const Tensor shared = ops::sum(label * prediction, axes);
  const Tensor all = ops::sum(label, axes) + ops::sum(prediction, axes);
  return one_minus(ops::scale(shared, 2) / ops::shift(all, kEpsilon));
}

Tensor tversky(const Tensor& y_true, const Tensor& y_pred, double alpha, double beta,
               const std::vector<int>& axes) {
  const auto [label, prediction] = fit_labels("tversky", y_true, y_pred);
  const Tensor shared = ops::sum(label * prediction, axes);
  const Tensor extra = ops::sum(one_minus(label) * prediction, axes);
  const Tensor missing = ops::sum(label * one_minus(prediction), axes);
  const Tensor all = shared + ops::scale(extra, alpha) + ops::scale(missing, beta);
  return one_minus(shared / ops::shift(all, kEpsilon));
}

}  // namespace losses

void HuberLossOptions::check(const char* caller) const { check_delta(caller, delta); }

KEEL_REGISTER_ALL(Loss, regression_losses) {
  registry.add_all<CosineSimilarityLoss, DiceLoss, HuberLoss, LogCoshLoss, MeanAbsoluteErrorLoss,
                   MeanAbsolutePercentageErrorLoss, MeanSquaredErrorLoss,
                   MeanSquaredLogarithmicErrorLoss, TverskyLoss>({.package = "keras"});
}

}  // namespace keel
