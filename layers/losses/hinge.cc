#include <keel/layers/losses/hinge.h>

#include <keel/autodiff/ops.h>
#include <keel/framework/config/registry.h>

namespace keel {
namespace {

// Maps labels 0 and 1 to -1 and 1. If any label has another value, all are returned unchanged.
Tensor signed_labels(const Tensor& y) {
  if (!y.is_symbolic() && y.size() == 0) return y;
  const Tensor zero = Tensor::zeros({}, y.dtype());
  const Tensor is_other = ops::cast(ops::not_equal(y * (y - 1.0), zero), y.dtype());
  const Tensor all_binary = ops::equal(ops::max(is_other), zero);
  return ops::where(all_binary, ops::scale(y, 2) - 1.0, y);
}

Tensor not_negative(const Tensor& x) { return ops::maximum(x, Tensor::zeros({}, x.dtype())); }

Tensor margin(const char* caller, const Tensor& y_true, const Tensor& y_pred) {
  const auto [label, prediction] = fit_labels(caller, y_true, y_pred);
  return not_negative(ops::shift(-(signed_labels(label) * prediction), 1));
}

}  // namespace

namespace losses {

Tensor hinge(const Tensor& y_true, const Tensor& y_pred) {
  return ops::mean(margin("hinge", y_true, y_pred), {-1});
}

Tensor squared_hinge(const Tensor& y_true, const Tensor& y_pred) {
  return ops::mean(ops::square(margin("squared_hinge", y_true, y_pred)), {-1});
}

Tensor categorical_hinge(const Tensor& y_true, const Tensor& y_pred) {
  const auto [label, prediction] = fit_labels("categorical_hinge", y_true, y_pred);
  const Tensor right = ops::sum(label * prediction, {-1});
  const Tensor wrong = ops::max(ops::shift(-label, 1) * prediction, {-1});
  return not_negative(ops::shift(wrong - right, 1));
}

}  // namespace losses

Tensor HingeLoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  return losses::hinge(y_true, y_pred);
}

Tensor SquaredHingeLoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  return losses::squared_hinge(y_true, y_pred);
}

Tensor CategoricalHingeLoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  return losses::categorical_hinge(y_true, y_pred);
}

KEEL_REGISTER(Loss, CategoricalHingeLoss)
KEEL_REGISTER(Loss, HingeLoss)
KEEL_REGISTER(Loss, SquaredHingeLoss)

}  // namespace keel
