// Pairwise losses for learning to rank (keras_rs.losses).
//
// y_true and y_pred are [batch, items], or [items] for one list. The loss of item i is the sum,
// over the items j of the same list with y_i > y_j, of a function of the score difference
//   d = (s_i - s_j) / temperature
// The losses have the shape [batch, items]. Sample weights may be per list or per item.
// Items form no pairs if their label is negative, or if the mask of y_true or y_pred excludes them:
// {"labels": y, "mask": m} in keras_rs corresponds to y.with_mask(m) here. Their losses are 0 and
// are counted in means.
// Time and memory grow with batch * items^2.
#pragma once

#include <keel/layers/losses/loss.h>

namespace keel {

// The options of PairwiseLoss.
struct PairwiseLossOptions {
  double temperature = 1;  // > 0
  std::string reduction = "sum_over_batch_size";
  std::string name = {};  // empty: the class name in snake case

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("temperature", self.temperature);
  }
};

// Base class of the losses below. The constructor throws ValueError unless temperature > 0. Calls
// throw the errors of item_lists().
class PairwiseLoss : public Loss {
 public:
  using Options = PairwiseLossOptions;
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const final;
  Config get_config() const final { return to_config(options_); }

 protected:
  PairwiseLoss(const char* class_name, Options options);

  // Selects the pairs (i, j) that have a loss, given the valid pairs [batch, items, items].
  virtual Tensor chosen(const Tensor& valid, const Tensor& label_i, const Tensor& label_j) const;
  // Returns the loss of each pair. `labels` and `scores` are differences; scores are 0 where there
  // is no pair.
  virtual Tensor loss_of_pairs(const Tensor& labels, const Tensor& scores) const = 0;
  const Options& options() const { return options_; }

 private:
  bool sparse_labels(const Tensor&, const Tensor&) const final { return true; }
  bool uses_mask() const final { return true; }
  const Options options_;
};

// max(0, 1 - d): the pairwise hinge loss of ranking SVMs (Herbrich et al. 1999; Joachims 2002).
class PairwiseHingeLoss final : public PairwiseLoss {
 public:
  static constexpr char kClassName[] = "PairwiseHingeLoss";
  explicit PairwiseHingeLoss(Options options) : PairwiseLoss(kClassName, std::move(options)) {}

 private:
  Tensor loss_of_pairs(const Tensor& labels, const Tensor& scores) const override;
};

// log(1 + e^-d): RankNet (Burges et al. 2005).
class PairwiseLogisticLoss final : public PairwiseLoss {
 public:
  static constexpr char kClassName[] = "PairwiseLogisticLoss";
  explicit PairwiseLogisticLoss(Options options) : PairwiseLoss(kClassName, std::move(options)) {}

 private:
  Tensor loss_of_pairs(const Tensor& labels, const Tensor& scores) const override;
};

// 1 - sigmoid(d): near 1 for pairs in the wrong order, and near 0 for the others.
class PairwiseSoftZeroOneLoss final : public PairwiseLoss {
 public:
  static constexpr char kClassName[] = "PairwiseSoftZeroOneLoss";
  explicit PairwiseSoftZeroOneLoss(Options options)
      : PairwiseLoss(kClassName, std::move(options)) {}

 private:
  Tensor loss_of_pairs(const Tensor& labels, const Tensor& scores) const override;
};

// ((y_i - y_j) - (s_i - s_j))^2 for all pairs of valid items, regardless of their order. The
// temperature has no effect, as in keras_rs.
class PairwiseMeanSquaredErrorLoss final : public PairwiseLoss {
 public:
  static constexpr char kClassName[] = "PairwiseMeanSquaredError";
  explicit PairwiseMeanSquaredErrorLoss(Options options)
      : PairwiseLoss(kClassName, std::move(options)) {}

 private:
  Tensor chosen(const Tensor& valid, const Tensor&, const Tensor&) const override { return valid; }
  Tensor loss_of_pairs(const Tensor& labels, const Tensor& scores) const override;
};

namespace losses {
// Handles to the losses, under Keras's names.
using PairwiseHingeLoss = Handle<keel::PairwiseHingeLoss>;
using PairwiseLogisticLoss = Handle<keel::PairwiseLogisticLoss>;
using PairwiseSoftZeroOneLoss = Handle<keel::PairwiseSoftZeroOneLoss>;
using PairwiseMeanSquaredError = Handle<PairwiseMeanSquaredErrorLoss>;
}  // namespace losses

}  // namespace keel
