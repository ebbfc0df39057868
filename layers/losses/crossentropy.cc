#include <keel/layers/losses/crossentropy.h>

#include <cmath>

#include <keel/autodiff/ops.h>
#include <keel/framework/config/registry.h>
#include <keel/layers/losses/internal/probabilities.h>

namespace keel {
namespace {

using loss_internal::clip_probabilities;
using loss_internal::smoothed;

// Returns log p, where p is clipped after it is scaled to sum to 1.
Tensor log_probabilities(const Tensor& y_pred, bool from_logits, int axis) {
  if (from_logits) return ops::log_softmax(y_pred, axis);
  const Tensor scaled = ops::divide(y_pred, ops::sum(y_pred, {axis}, true));
  return ops::log(clip_probabilities(scaled));
}

// Returns x with `axis` moved to the end.
Tensor with_last_axis(const Tensor& x, int axis) {
  const int at = x.shape().normalize_axis(axis);
  if (at == x.rank() - 1) return x;
  std::vector<int> order;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != at) order.push_back(i);
  }
  order.push_back(at);
  return ops::transpose(x, order);
}

void check_class_numbers(const char* caller, const Tensor& labels, int64_t classes,
                         std::optional<int64_t> ignore_class) {
  const Tensor numbers = labels.cast(DType::kFloat64);
  const auto values = numbers.data<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    const double v = values[i];
    if (ignore_class && v == static_cast<double>(*ignore_class)) continue;
    if (!(v >= 0 && v < static_cast<double>(classes) && v == std::floor(v))) {
      throw ValueError(caller, ": labels must be class indices in [0, ", classes, "), received ", v,
                       " at position ", i);
    }
  }
}

void check_predictions(const char* caller, const Tensor& y_pred) {
  if (!is_floating(y_pred.dtype())) {
    throw TypeError(caller, ": predictions must be float32 or float64, received ", y_pred.dtype());
  }
  if (y_pred.rank() < 2) {
    throw ValueError(caller, ": predictions must be [batch, classes], received ", y_pred.shape());
  }
}

// Returns the labels as int64 class numbers, in the shape of the predictions without the last axis.
// Symbolic labels are not checked.
Tensor class_numbers(const char* caller, const Tensor& y_true, const Tensor& y_pred,
                     std::optional<int64_t> ignore_class) {
  const Shape want = y_pred.shape().drop_last();
  Tensor labels = y_true;
  if (labels.rank() == want.rank() + 1 && labels.dim(-1) == 1) labels = ops::squeeze(labels, -1);
  if (!compatible(labels.shape(), want)) {
    throw ValueError(caller, ": labels of shape ", y_true.shape(),
                     " do not match predictions of shape ", y_pred.shape(),
                     "; pass one class index for each prediction");
  }
  if (!labels.is_symbolic()) check_class_numbers(caller, labels, y_pred.dim(-1), ignore_class);
  return ops::cast(labels, DType::kInt64);
}

}  // namespace

namespace losses {

Tensor binary_crossentropy(const Tensor& y_true, const Tensor& y_pred, bool from_logits,
                           double label_smoothing, int axis) {
  const auto [label, prediction] = fit_labels("binary_crossentropy", y_true, y_pred);
  const Tensor y = smoothed(label, label_smoothing, 0.5);
  if (from_logits) return ops::mean(ops::sigmoid_cross_entropy(y, prediction), {axis});
  const Tensor p = clip_probabilities(prediction);
  const Tensor one = y * ops::log(p);
  const Tensor zero = ops::shift(-y, 1) * ops::log(ops::shift(-p, 1));
  return ops::negative(ops::mean(one + zero, {axis}));
}

Tensor categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred, bool from_logits,
                                double label_smoothing, int axis) {
  const auto [label, prediction] = fit_labels("categorical_crossentropy", y_true, y_pred);
  const double share = 1.0 / static_cast<double>(prediction.dim(axis));
  const Tensor y = smoothed(label, label_smoothing, share);
  return ops::negative(ops::sum(y * log_probabilities(prediction, from_logits, axis), {axis}));
}

Tensor sparse_categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred, bool from_logits,
                                       std::optional<int64_t> ignore_class, int axis) {
  const char* const caller = "sparse_categorical_crossentropy";
  check_predictions(caller, y_pred);
  const Tensor prediction = with_last_axis(y_pred, axis);
  Tensor labels = class_numbers(caller, y_true, prediction, ignore_class);
  Tensor counts;
  if (ignore_class) {
    // The one-hot encoding needs valid labels, so ignored ones become class 0. Their losses are
    // replaced below.
    counts = ops::not_equal(labels, Tensor::scalar(*ignore_class));
    labels = ops::where(counts, labels, ops::zeros_like(labels));
  }
  const Tensor chosen = ops::one_hot(labels, prediction.dim(-1), prediction.dtype());
  Tensor losses =
      ops::negative(ops::sum(chosen * log_probabilities(prediction, from_logits, -1), {-1}));
  if (!ignore_class) return losses;
  return ops::where(counts, losses, Tensor::zeros({}, losses.dtype())).with_mask(counts);
}

Tensor categorical_generalized_cross_entropy(const Tensor& y_true, const Tensor& y_pred, double q) {
  const char* const caller = "categorical_generalized_cross_entropy";
  check_predictions(caller, y_pred);
  const Tensor labels = class_numbers(caller, y_true, y_pred, {});
  const Tensor chosen = ops::one_hot(labels, y_pred.dim(-1), y_pred.dtype());
  const Tensor p = ops::sum(y_pred * chosen, {-1});
  const Tensor power = ops::pow(p, Tensor::scalar(q).cast(p.dtype()));
  return ops::scale(ops::shift(-power, 1), 1 / q);
}

Tensor auto_crossentropy(const Tensor& y_true, const Tensor& y_pred) {
  switch (label_kind(y_true, y_pred)) {
    case LabelKind::kBinary:
      return binary_crossentropy(y_true, y_pred);
    case LabelKind::kSparseCategorical:
      return sparse_categorical_crossentropy(y_true, y_pred);
    default:
      return categorical_crossentropy(y_true, y_pred);
  }
}

}  // namespace losses

void CategoricalGeneralizedCrossEntropyLossOptions::check(const char* caller) const {
  if (!(q > 0 && q < 1)) throw ValueError(caller, ": q must be in (0, 1), received ", q);
}

void internal::check_label_smoothing(const char* caller, double label_smoothing) {
  if (!(label_smoothing >= 0 && label_smoothing <= 1)) {
    throw ValueError(caller, ": label_smoothing must be in [0, 1], received ", label_smoothing);
  }
}

KEEL_REGISTER_ALL(Loss, crossentropy_losses) {
  registry.add_all<BinaryCrossentropyLoss, CategoricalCrossentropyLoss,
                   CategoricalGeneralizedCrossEntropyLoss, SparseCategoricalCrossentropyLoss>(
      {.package = "keras"});
  registry.add_all<AutoCrossentropyLoss>({.package = "keel"});
}

}  // namespace keel
