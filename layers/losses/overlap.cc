#include <keel/layers/losses/overlap.h>

#include <keel/autodiff/ops.h>
#include <keel/framework/config/registry.h>

namespace keel {
namespace {

constexpr double kEpsilon = 1e-7;

Tensor one_minus(const Tensor& x) { return ops::shift(-x, 1); }

}  // namespace

namespace losses {

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

Tensor DiceLoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  return losses::dice(y_true, y_pred, options_.axis.value_or(std::vector<int>()));
}

Tensor TverskyLoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  return losses::tversky(y_true, y_pred, options_.alpha, options_.beta,
                         options_.axis.value_or(std::vector<int>()));
}

KEEL_REGISTER(Loss, DiceLoss)
KEEL_REGISTER(Loss, TverskyLoss)

}  // namespace keel
