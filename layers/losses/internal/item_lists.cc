#include <keel/layers/losses/internal/item_lists.h>

#include <keel/autodiff/ops.h>

namespace keel {
namespace {

// Returns `valid` restricted to the mask, which may be empty or have only the first dimension.
Tensor masked(const Tensor& valid, const Tensor& mask) {
  if (!mask) return valid;
  const Tensor fitted = mask.rank() < valid.rank() ? ops::expand_dims(mask, -1) : mask;
  return ops::logical_and(valid, fitted);
}

}  // namespace

ItemLists item_lists(const std::string& caller, const Tensor& y_true, const Tensor& y_pred) {
  if (!is_floating(y_pred.dtype())) {
    throw TypeError(caller, ": predictions must be float32 or float64, received ", y_pred.dtype());
  }
  if (y_pred.rank() < 1 || y_pred.rank() > 2 || !compatible(y_true.shape(), y_pred.shape())) {
    throw ValueError(
        caller, ": labels and predictions must have the same shape, [batch, items] or [items], ",
        "received ", y_true.shape(), " and ", y_pred.shape());
  }
  const Tensor labels = ops::cast(y_true, y_pred.dtype());
  const Tensor not_negative = ops::greater_equal(labels, Tensor::zeros({}, labels.dtype()));
  const Tensor valid = masked(masked(not_negative, y_true.mask()), y_pred.mask());
  if (y_pred.rank() == 2) return {.labels = labels, .scores = y_pred, .valid = valid};
  return {.labels = ops::expand_dims(labels, 0),
          .scores = ops::expand_dims(y_pred, 0),
          .valid = ops::expand_dims(valid, 0)};
}

PairSides pair_sides(const Tensor& values) {
  return {.first = ops::expand_dims(values, -1), .second = ops::expand_dims(values, -2)};
}

}  // namespace keel
