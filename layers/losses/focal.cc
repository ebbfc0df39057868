#include <keel/layers/losses/focal.h>

#include <keel/autodiff/ops.h>
#include <keel/framework/config/registry.h>
#include <keel/layers/losses/internal/probabilities.h>

namespace keel {
namespace {

using loss_internal::check_smoothing;
using loss_internal::clip_probabilities;
using loss_internal::smoothed;

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

}  // namespace losses

BinaryFocalCrossentropyLoss::BinaryFocalCrossentropyLoss(Options options)
    : Loss(kClassName, options), options_(std::move(options)) {
  check_smoothing(kClassName, options_.label_smoothing);
}

Tensor BinaryFocalCrossentropyLoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  return losses::binary_focal_crossentropy(y_true, y_pred, options_.apply_class_balancing,
                                           options_.alpha, options_.gamma, options_.from_logits,
                                           options_.label_smoothing, options_.axis);
}

CategoricalFocalCrossentropyLoss::CategoricalFocalCrossentropyLoss(Options options)
    : Loss(kClassName, options), options_(std::move(options)) {
  check_smoothing(kClassName, options_.label_smoothing);
}

Tensor CategoricalFocalCrossentropyLoss::per_sample(const Tensor& y_true,
                                                    const Tensor& y_pred) const {
  return losses::categorical_focal_crossentropy(y_true, y_pred, options_.alpha, options_.gamma,
                                                options_.from_logits, options_.label_smoothing,
                                                options_.axis);
}

KEEL_REGISTER(Loss, BinaryFocalCrossentropyLoss)
KEEL_REGISTER(Loss, CategoricalFocalCrossentropyLoss)

}  // namespace keel
