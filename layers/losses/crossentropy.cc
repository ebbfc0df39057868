#include "layers/losses/crossentropy.h"

#include <cmath>

#include "autodiff/ops.h"

namespace keel {
namespace {

constexpr double kEpsilon = 1e-7;

Tensor clip_probabilities(const Tensor& p) { return ops::clip_by_value(p, kEpsilon, 1 - kEpsilon); }

void check_smoothing(const char* who, double smoothing) {
  if (!(smoothing >= 0 && smoothing <= 1)) {
    throw ValueError(who, ": label_smoothing must be in [0, 1], received ", smoothing);
  }
}

// y (1 - s) + s share
Tensor smoothed(const Tensor& y, double smoothing, double share) {
  return smoothing == 0 ? y : ops::shift(ops::scale(y, 1 - smoothing), smoothing * share);
}

Tensor log_probabilities(const Tensor& y_pred, bool from_logits, int axis) {
  if (from_logits) return ops::log_softmax(y_pred, axis);
  const Tensor scaled = ops::divide(y_pred, ops::sum(y_pred, {axis}, true));
  return ops::log(clip_probabilities(scaled));
}

// Class numbers as int64, of the predictions' shape without the last axis.
Tensor class_numbers(const char* who, const Tensor& y_true, const Tensor& y_pred) {
  const Shape want = y_pred.shape().drop_last();
  Tensor labels = y_true;
  if (labels.rank() == want.rank() + 1 && labels.dim(-1) == 1) labels = ops::squeeze(labels, -1);
  if (!compatible(labels.shape(), want)) {
    throw ValueError(who, ": labels of shape ", y_true.shape(), " do not fit predictions of shape ",
                     y_pred.shape());
  }
  if (labels.is_symbolic()) return ops::cast(labels, DType::kInt64);
  const int64_t classes = y_pred.dim(-1);
  const Tensor numbers = labels.cast(DType::kFloat64);
  const auto values = numbers.data<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    const double v = values[i];
    if (!(v >= 0 && v < static_cast<double>(classes) && v == std::floor(v))) {
      throw ValueError(who, ": labels must be class numbers below ", classes, ", received ", v,
                       " at position ", i);
    }
  }
  return labels.cast(DType::kInt64);
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

Tensor sparse_categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                       bool from_logits) {
  const char* const who = "sparse_categorical_crossentropy";
  if (!is_floating(y_pred.dtype())) {
    throw TypeError(who, ": predictions must be float32 or float64, received ", y_pred.dtype());
  }
  if (y_pred.rank() < 2) {
    throw ValueError(who, ": predictions must be [batch, classes], received ", y_pred.shape());
  }
  const Tensor labels = class_numbers(who, y_true, y_pred);
  const Tensor chosen = ops::one_hot(labels, y_pred.dim(-1), y_pred.dtype());
  return ops::negative(ops::sum(chosen * log_probabilities(y_pred, from_logits, -1), {-1}));
}

}  // namespace losses

BinaryCrossentropyLoss::BinaryCrossentropyLoss(Options options)
    : Loss(kClassName, options), options_(std::move(options)) {
  check_smoothing(kClassName, options_.label_smoothing);
}

Tensor BinaryCrossentropyLoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  return losses::binary_crossentropy(y_true, y_pred, options_.from_logits, options_.label_smoothing,
                                     options_.axis);
}

CategoricalCrossentropyLoss::CategoricalCrossentropyLoss(Options options)
    : Loss(kClassName, options), options_(std::move(options)) {
  check_smoothing(kClassName, options_.label_smoothing);
}

Tensor CategoricalCrossentropyLoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  return losses::categorical_crossentropy(y_true, y_pred, options_.from_logits,
                                          options_.label_smoothing, options_.axis);
}

SparseCategoricalCrossentropyLoss::SparseCategoricalCrossentropyLoss(Options options)
    : Loss(kClassName, options), options_(std::move(options)) {
  if (options_.ignore_class) {
    throw NotImplementedError(kClassName, ": ignore_class is not offered");
  }
  if (options_.axis != -1) {
    throw NotImplementedError(kClassName, ": axis must be -1, received ", options_.axis);
  }
}

Tensor SparseCategoricalCrossentropyLoss::per_sample(const Tensor& y_true,
                                                     const Tensor& y_pred) const {
  return losses::sparse_categorical_crossentropy(y_true, y_pred, options_.from_logits);
}

}  // namespace keel
