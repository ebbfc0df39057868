// Losses for learning to rank: pairwise losses and ListMLE (keras_rs.losses).
//
// y_true and y_pred are [batch, items], or [items] for one list. Items are excluded if their label
// is negative, or if the mask of y_true or y_pred excludes them: {"labels": y, "mask": m} in
// keras_rs corresponds to y.with_mask(m) here. Time and memory grow with batch * items^2. Calls
// throw TypeError unless y_pred is floating point, and ValueError for shapes other than the above.
//
// A pairwise loss of item i is the sum, over the items j of the same list with y_i > y_j, of a
// function of the score difference
//   d = (s_i - s_j) / temperature
// Pairwise losses have the shape [batch, items]. The losses of excluded items are 0 and are counted
// in means. Sample weights may be per list or per item.
#pragma once

#include <keel/layers/losses/formula_loss.h>

namespace keel {
namespace internal {
// Throws ValueError, naming `caller`, unless temperature > 0.
void check_temperature(const char* caller, double temperature);
}  // namespace internal

// The functions return the loss of each item or list, without a reduction. Their errors name
// `caller`.
namespace losses {

// Sums max(0, 1 - d): the pairwise hinge loss of ranking SVMs (Herbrich et al. 1999; Joachims
// 2002).
Tensor pairwise_hinge(const std::string& caller, const Tensor& y_true, const Tensor& y_pred,
                      double temperature);
// Sums log(1 + e^-d): RankNet (Burges et al. 2005).
Tensor pairwise_logistic(const std::string& caller, const Tensor& y_true, const Tensor& y_pred,
                         double temperature);
// Sums 1 - sigmoid(d), which is near 1 for pairs in the wrong order, and near 0 for the others.
Tensor pairwise_soft_zero_one(const std::string& caller, const Tensor& y_true, const Tensor& y_pred,
                              double temperature);
// Sums ((y_i - y_j) - (s_i - s_j))^2 over all pairs of valid items, regardless of their order. The
// temperature has no effect, as in keras_rs.
Tensor pairwise_mean_squared_error(const std::string& caller, const Tensor& y_true,
                                   const Tensor& y_pred, double temperature);
// Returns minus the log of the probability of the correct order, if the items are drawn one after
// another by the softmax of the scores that are left (Xia et al. 2008, "Listwise approach to
// learning to rank"). With s in descending order of the labels, where items with equal labels keep
// their order,
//   loss = sum over i of log(sum over j >= i of e^s_j) - s_i
// Scores are first divided by the temperature. Losses are [batch]; a list without items has the
// loss 0. Throws NotImplementedError for symbolic tensors with an unknown number of items.
Tensor list_mle(const std::string& caller, const Tensor& y_true, const Tensor& y_pred,
                double temperature);

}  // namespace losses

// The options of a ranking loss, which `kFunction` computes.
template <auto kFunction>
struct RankingLossOptions {
  double temperature = 1;  // > 0; score differences, or the scores of ListMLE, are divided by it
  std::string reduction = "sum_over_batch_size";
  std::string name = {};  // empty: the class name in snake case

  static constexpr void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("temperature", self.temperature);
  }
  void check(const char* caller) const { internal::check_temperature(caller, temperature); }
  bool sparse_labels(const Tensor&, const Tensor&) const { return true; }
  static bool uses_mask() { return true; }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return kFunction(name, y_true, y_pred, temperature);
  }
};
using PairwiseHingeLoss =
    FormulaLoss<"PairwiseHingeLoss", RankingLossOptions<losses::pairwise_hinge>>;
using PairwiseLogisticLoss =
    FormulaLoss<"PairwiseLogisticLoss", RankingLossOptions<losses::pairwise_logistic>>;
using PairwiseSoftZeroOneLoss =
    FormulaLoss<"PairwiseSoftZeroOneLoss", RankingLossOptions<losses::pairwise_soft_zero_one>>;
using PairwiseMeanSquaredErrorLoss =
    FormulaLoss<"PairwiseMeanSquaredError",
                RankingLossOptions<losses::pairwise_mean_squared_error>>;
using ListMLELoss = FormulaLoss<"ListMLELoss", RankingLossOptions<losses::list_mle>>;

namespace losses {
// Handles to the losses, under the names of keras_rs.
using PairwiseHingeLoss = Handle<keel::PairwiseHingeLoss>;
using PairwiseLogisticLoss = Handle<keel::PairwiseLogisticLoss>;
using PairwiseSoftZeroOneLoss = Handle<keel::PairwiseSoftZeroOneLoss>;
using PairwiseMeanSquaredError = Handle<PairwiseMeanSquaredErrorLoss>;
using ListMLELoss = Handle<keel::ListMLELoss>;
}  // namespace losses

}  // namespace keel
