#include <keel/layers/losses/probabilistic.h>

#include <keel/autodiff/ops.h>
#include <keel/framework/config/registry.h>

namespace keel {
namespace {

constexpr double kEpsilon = 1e-7;

}  // namespace

namespace losses {

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

Tensor KLDivergenceLoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  return losses::kl_divergence(y_true, y_pred);
}

Tensor PoissonLoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  return losses::poisson(y_true, y_pred);
}

KEEL_REGISTER(Loss, KLDivergenceLoss)
KEEL_REGISTER(Loss, PoissonLoss)

}  // namespace keel
