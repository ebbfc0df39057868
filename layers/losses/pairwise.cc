#include <keel/layers/losses/pairwise.h>

#include <keel/autodiff/ops.h>
#include <keel/framework/config/registry.h>
#include <keel/layers/internal/naming.h>
#include <keel/layers/losses/internal/item_lists.h>

namespace keel {
namespace {

PairwiseLossOptions checked(const char* caller, PairwiseLossOptions options) {
  if (!(options.temperature > 0)) {
    throw ValueError(caller, ": temperature must be positive, received ", options.temperature);
  }
  if (options.name.empty()) options.name = to_snake_case(caller);
  return options;
}

}  // namespace

PairwiseLoss::PairwiseLoss(const char* class_name, Options options)
    : Loss(class_name, checked(class_name, options)),
      options_(checked(class_name, std::move(options))) {}

Tensor PairwiseLoss::chosen(const Tensor& valid, const Tensor& label_i,
                            const Tensor& label_j) const {
  return ops::logical_and(valid, ops::greater(label_i, label_j));
}

Tensor PairwiseLoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  const ItemLists lists = item_lists(name(), y_true, y_pred);
  const auto [label_i, label_j] = pair_sides(lists.labels);
  const auto [score_i, score_j] = pair_sides(lists.scores);
  const auto [valid_i, valid_j] = pair_sides(lists.valid);
  const Tensor pairs = chosen(ops::logical_and(valid_i, valid_j), label_i, label_j);
  const Tensor zero = Tensor::zeros({}, y_pred.dtype());
  // Scores of excluded pairs may be infinite, so they are replaced before the loss is computed. A
  // mask after it would leave NaN gradients.
  const Tensor difference = ops::where(pairs, score_i - score_j, zero);
  const Tensor loss = loss_of_pairs(label_i - label_j, difference);
  return ops::sum(ops::where(pairs, loss, zero), {-1});
}

Tensor PairwiseHingeLoss::loss_of_pairs(const Tensor&, const Tensor& scores) const {
  return ops::relu(ops::shift(ops::scale(scores, -1 / options().temperature), 1));
}

Tensor PairwiseLogisticLoss::loss_of_pairs(const Tensor&, const Tensor& scores) const {
  return ops::softplus(ops::scale(scores, -1 / options().temperature));
}

Tensor PairwiseSoftZeroOneLoss::loss_of_pairs(const Tensor&, const Tensor& scores) const {
  return ops::sigmoid(ops::scale(scores, -1 / options().temperature));
}

Tensor PairwiseMeanSquaredErrorLoss::loss_of_pairs(const Tensor& labels,
                                                   const Tensor& scores) const {
  return ops::square(labels - scores);
}

KEEL_REGISTER(Loss, PairwiseHingeLoss)
KEEL_REGISTER(Loss, PairwiseLogisticLoss)
KEEL_REGISTER(Loss, PairwiseMeanSquaredErrorLoss)
KEEL_REGISTER(Loss, PairwiseSoftZeroOneLoss)

}  // namespace keel
