#include <keel/layers/losses/ranking.h>

#include <limits>

#include <keel/autodiff/ops.h>
#include <keel/framework/config/registry.h>
#include <keel/layers/losses/internal/item_lists.h>

namespace keel {
namespace {

// Sums over j the losses of the pairs (i, j) of the lists. `chosen` selects the pairs that have a
// loss, given the valid pairs [batch, items, items] and both labels. `loss_of_pairs` computes the
// loss of each pair from the differences of the labels and of the scores.
template <class Chosen, class LossOfPairs>
Tensor pairwise(const std::string& caller, const Tensor& y_true, const Tensor& y_pred,
                const Chosen& chosen, const LossOfPairs& loss_of_pairs) {
  const ItemLists lists = item_lists(caller, y_true, y_pred);
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

// Sums `loss_of_margin` of -d over the pairs whose first item has the greater label.
template <class LossOfMargin>
Tensor ordered_pairs(const std::string& caller, const Tensor& y_true, const Tensor& y_pred,
                     double temperature, const LossOfMargin& loss_of_margin) {
  const auto is_ordered = [](const Tensor& valid, const Tensor& label_i, const Tensor& label_j) {
    return ops::logical_and(valid, ops::greater(label_i, label_j));
  };
  return pairwise(caller, y_true, y_pred, is_ordered, [&](const Tensor&, const Tensor& scores) {
    return loss_of_margin(ops::scale(scores, -1 / temperature));
  });
}

// Returns a [n, n] tensor that is true where the column index is at least the row index.
Tensor not_before(int64_t n) {
  Tensor out = Tensor::full<bool>({n, n}, false);
  const auto values = out.mutable_data<bool>();
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i; j < n; ++j) values[i * n + j] = true;
  }
  return out;
}

// For pairs (i, j) of valid items: returns true where j is i or comes after i in the correct order.
Tensor not_earlier(const ItemLists& lists) {
  const auto [label_i, label_j] = pair_sides(lists.labels);
  const auto [valid_i, valid_j] = pair_sides(lists.valid);
  const Tensor equal =
      ops::logical_and(ops::equal(label_i, label_j), not_before(lists.labels.dim(1)));
  const Tensor ordered = ops::logical_or(ops::greater(label_i, label_j), equal);
  return ops::logical_and(ordered, ops::logical_and(valid_i, valid_j));
}

}  // namespace

namespace losses {

Tensor pairwise_hinge(const std::string& caller, const Tensor& y_true, const Tensor& y_pred,
                      double temperature) {
  return ordered_pairs(caller, y_true, y_pred, temperature,
                       [](const Tensor& x) { return ops::relu(ops::shift(x, 1)); });
}

Tensor pairwise_logistic(const std::string& caller, const Tensor& y_true, const Tensor& y_pred,
                         double temperature) {
  return ordered_pairs(caller, y_true, y_pred, temperature,
                       [](const Tensor& x) { return ops::softplus(x); });
}

Tensor pairwise_soft_zero_one(const std::string& caller, const Tensor& y_true, const Tensor& y_pred,
                              double temperature) {
  return ordered_pairs(caller, y_true, y_pred, temperature,
                       [](const Tensor& x) { return ops::sigmoid(x); });
}

Tensor pairwise_mean_squared_error(const std::string& caller, const Tensor& y_true,
                                   const Tensor& y_pred, double) {
  const auto all = [](const Tensor& valid, const Tensor&, const Tensor&) { return valid; };
  return pairwise(caller, y_true, y_pred, all, [](const Tensor& labels, const Tensor& scores) {
    return ops::square(labels - scores);
  });
}

Tensor list_mle(const std::string& caller, const Tensor& y_true, const Tensor& y_pred,
                double temperature) {
  const ItemLists lists = item_lists(caller, y_true, y_pred);
  if (lists.scores.dim(1) == kUnknown) {
    throw NotImplementedError(caller, ": the number of items must be known, received shape ",
                              y_pred.shape());
  }
  if (lists.scores.dim(1) == 0) return ops::sum(lists.scores, {1});
  const Tensor zero = Tensor::zeros({}, y_pred.dtype());
  const Tensor lowest = Tensor::scalar(-1e30).cast(y_pred.dtype());
  const Tensor scores = ops::where(lists.valid, ops::scale(lists.scores, 1 / temperature), zero);
  const Tensor left = not_earlier(lists);
  const Tensor score_j = pair_sides(scores).second;
  // Subtracting the maximum keeps the sum positive and avoids overflow.
  const Tensor top = ops::stop_gradient(ops::max(ops::where(left, score_j, lowest), {-1}, true));
  const Tensor parts = ops::exp(ops::where(left, score_j - top, zero));
  const Tensor sum = ops::sum(ops::where(left, parts, zero), {-1});
  const Tensor log_sum =
      ops::log(ops::where(lists.valid, sum, ops::ones_like(sum))) + ops::squeeze(top, -1);
  return ops::sum(ops::where(lists.valid, log_sum - scores, zero), {-1});
}

}  // namespace losses

void internal::check_temperature(const char* caller, double temperature) {
  if (!(temperature > 0)) {
    throw ValueError(caller, ": temperature must be positive, received ", temperature);
  }
}

KEEL_REGISTER_ALL(Loss, ranking_losses) {
  registry.add_all<ListMLELoss, PairwiseHingeLoss, PairwiseLogisticLoss,
                   PairwiseMeanSquaredErrorLoss, PairwiseSoftZeroOneLoss>({.package = "keras_rs"});
}

}  // namespace keel
