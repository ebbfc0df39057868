#include <keel/layers/losses/margin.h>

#include <keel/autodiff/ops.h>
#include <keel/framework/config/registry.h>
#include <keel/framework/exact_cast.h>

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

void check_embeddings(const Tensor& y_true, const Tensor& y_pred) {
  if (!is_floating(y_pred.dtype())) {
    throw TypeError("circle: predictions must be float32 or float64, received ", y_pred.dtype());
  }
  const bool is_column = y_true.rank() == 1 || (y_true.rank() == 2 && y_true.dim(1) == 1);
  if (y_pred.rank() != 2 || !is_column ||
      !compatible(y_true.shape().slice(0, 1), y_pred.shape().slice(0, 1))) {
    throw ValueError(
        "circle: labels must be class indices [batch] and predictions [batch, dim], received ",
        y_true.shape(), " and ", y_pred.shape());
  }
  if (y_pred.dim(0) == kUnknown) {
    throw NotImplementedError("circle: the batch size must be known, received shape ",
                              y_pred.shape());
  }
}

// Returns a [n, n] tensor that is false on the diagonal and true elsewhere.
Tensor off_diagonal(int64_t n) {
  Tensor out = Tensor::full<bool>({n, n}, true);
  const auto values = out.mutable_data<bool>();
  for (int64_t i = 0; i < n; ++i) values[i * (n + 1)] = false;
  return out;
}

// The log of the sum of e^x over the chosen elements of each row. `value` is undefined where `any`
// is false.
struct LogSum {
  Tensor value, any;
};
LogSum log_sum_exp(const Tensor& x, const Tensor& chosen) {
  const Tensor zero = Tensor::zeros({}, x.dtype());
  const Tensor lowest = Tensor::scalar(-1e30).cast(x.dtype());
  // Subtracting the maximum avoids overflow; it needs no gradient because it cancels.
  const Tensor top = ops::stop_gradient(ops::max(ops::where(chosen, x, lowest), {1}, true));
  const Tensor parts = ops::exp(ops::where(chosen, x - top, zero));
  const Tensor sum = ops::sum(ops::where(chosen, parts, zero), {1});
  const Tensor any = ops::greater(sum, zero);
  const Tensor logarithm = ops::log(ops::where(any, sum, ops::ones_like(sum)));
  return {.value = logarithm + ops::squeeze(top, 1), .any = any};
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

Tensor circle(const Tensor& y_true, const Tensor& y_pred, bool remove_diagonal, double gamma,
              double margin) {
  check_embeddings(y_true, y_pred);
  const int64_t n = y_pred.dim(0);
  const Tensor zero = Tensor::zeros({}, y_pred.dtype());
  if (n == 0) return ops::sum(y_pred, {1});
  const Tensor labels =
      y_true.is_symbolic() ? ops::cast(y_true, DType::kInt64) : integer_ids("circle", y_true);
  const Tensor same =
      ops::equal(ops::reshape(labels, Shape({n, 1})), ops::reshape(labels, Shape({1, n})));
  const Tensor other = ops::logical_not(same);
  const Tensor near = remove_diagonal ? ops::where(same, off_diagonal(n), same) : same;
  const Tensor similarity = ops::matmul(y_pred, y_pred, false, true);
  const Tensor distance = ops::maximum(ops::shift(-similarity, 1), zero);
  const Tensor pull = ops::maximum(ops::shift(distance, margin), zero);
  const Tensor push = ops::maximum(ops::shift(-distance, 1 + margin), zero);
  const LogSum too_far = log_sum_exp(ops::scale(pull * ops::shift(distance, -margin), gamma), near);
  const LogSum too_near =
      log_sum_exp(ops::scale(push * ops::shift(-distance, 1 - margin), gamma), other);
  const Tensor loss = ops::softplus(too_far.value + too_near.value);
  const Tensor both = ops::where(too_far.any, too_near.any, too_far.any);
  const Tensor losses = ops::where(both, loss, zero);
  return losses.with_mask(ops::greater(losses, zero));
}

}  // namespace losses

KEEL_REGISTER_ALL(Loss, margin_losses) {
  registry.add_all<CategoricalHingeLoss, CircleLoss, HingeLoss, SquaredHingeLoss>(
      {.package = "keras"});
}

}  // namespace keel
