#include <keel/layers/losses/probabilistic.h>

#include <keel/autodiff/ops.h>
#include <keel/framework/config/registry.h>
#include <keel/layers/losses/internal/probabilities.h>

namespace keel {
namespace {

using loss_internal::clip_probabilities;
using loss_internal::smoothed;

constexpr double kEpsilon = 1e-7;

Tensor one_minus(const Tensor& x) { return ops::shift(-x, 1); }

Tensor power(const Tensor& x, double exponent) {
  return ops::pow(x, Tensor::scalar(exponent).cast(x.dtype()));
}

// Returns x times alpha, which is a scalar or has one factor for each element along `axis`.
Tensor times_alpha(const Tensor& x, const ScalarOrList& alpha, int axis) {
  if (!alpha.is_list()) return ops::scale(x, alpha.values().at(0));
  const auto classes = static_cast<int64_t>(alpha.values().size());
  if (x.dim(axis) != classes) {
    throw ValueError("categorical_focal_crossentropy: alpha must have one value for each of the ",
                     x.dim(axis), " classes, received ", classes);
  }
  std::vector<int64_t> dims(x.rank(), 1);
  dims[x.shape().normalize_axis(axis)] = classes;
  return x * Tensor::from(alpha.values(), Shape(dims)).cast(x.dtype());
}

}  // namespace

namespace losses {

Tensor binary_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                 bool apply_class_balancing, double alpha, double gamma,
                                 bool from_logits, double label_smoothing, int axis) {
  const auto [label, prediction] = fit_labels("binary_focal_crossentropy", y_true, y_pred);
  const Tensor y = smoothed(label, label_smoothing, 0.5);
  const Tensor p = from_logits ? ops::sigmoid(prediction) : prediction;
  const Tensor clipped = clip_probabilities(p);
  const Tensor entropy = -(y * ops::log(clipped) + one_minus(y) * ops::log(one_minus(clipped)));
  const Tensor right = y * p + one_minus(y) * one_minus(p);
  Tensor focal = power(one_minus(right), gamma) * entropy;
  if (apply_class_balancing) {
    focal = (ops::scale(y, alpha) + ops::scale(one_minus(y), 1 - alpha)) * focal;
  }
  return ops::mean(focal, {axis});
}

Tensor categorical_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                      const ScalarOrList& alpha, double gamma, bool from_logits,
                                      double label_smoothing, int axis) {
  const auto [label, prediction] = fit_labels("categorical_focal_crossentropy", y_true, y_pred);
  const Tensor y =
      smoothed(label, label_smoothing, 1.0 / static_cast<double>(prediction.dim(axis)));
  const Tensor p = from_logits ? ops::softmax(prediction, axis) : prediction;
  const Tensor clipped = clip_probabilities(p / ops::sum(p, {axis}, true));
  const Tensor entropy = -(y * ops::log(clipped));
  const Tensor focal = times_alpha(power(one_minus(clipped), gamma), alpha, axis) * entropy;
  return ops::sum(focal, {axis});
}

Tensor kl_divergence(const Tensor& y_true, const Tensor& y_pred) {
  const auto [label, prediction] = fit_labels("kl_divergence", y_true, y_pred);
  const Tensor y = ops::clip_by_value(label, kEpsilon, 1);
  const Tensor p = ops::clip_by_value(prediction, kEpsilon, 1);
  return ops::sum(y * ops::log(y / p), {-1});
}

Tensor poisson(const Tensor& y_true, const Tensor& y_pred) {
  const auto [label, prediction] = fit_labels("poisson", y_true, y_pred);
  return ops::mean(prediction - label * ops::log(ops::shift(prediction, kEpsilon)), {-1});
}

}  // namespace losses

KEEL_REGISTER_ALL(Loss, probabilistic_losses) {
  registry.add_all<BinaryFocalCrossentropyLoss, CategoricalFocalCrossentropyLoss, KLDivergenceLoss,
                   PoissonLoss>({.package = "keras"});
}

}  // namespace keel
