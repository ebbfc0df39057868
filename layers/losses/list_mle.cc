#include <keel/layers/losses/list_mle.h>

#include <keel/autodiff/ops.h>
#include <keel/framework/config/registry.h>
#include <keel/layers/losses/internal/item_lists.h>

namespace keel {
namespace {

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

ListMLELoss::ListMLELoss(Options options)
    : Loss(kClassName, options), options_(std::move(options)) {
  if (!(options_.temperature > 0)) {
    throw ValueError(kClassName, ": temperature must be positive, received ", options_.temperature);
  }
}

Tensor ListMLELoss::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  const ItemLists lists = item_lists(name(), y_true, y_pred);
  if (lists.scores.dim(1) == kUnknown) {
    throw NotImplementedError(name(), ": the number of items must be known, received shape ",
                              y_pred.shape());
  }
  if (lists.scores.dim(1) == 0) return ops::sum(lists.scores, {1});
  const Tensor zero = Tensor::zeros({}, y_pred.dtype());
  const Tensor lowest = Tensor::scalar(-1e30).cast(y_pred.dtype());
  const Tensor scores =
      ops::where(lists.valid, ops::scale(lists.scores, 1 / options_.temperature), zero);
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

KEEL_REGISTER(Loss, ListMLELoss)

}  // namespace keel
