// Losses with a margin: hinge losses of scores, and the circle loss of embeddings.
//
// Each function of the namespace losses returns the loss of each sample, without a reduction.
#pragma once

#include <keel/layers/losses/formula_loss.h>

namespace keel {
namespace losses {

// Returns the mean over the last axis of max(1 - y_true y_pred, 0). Labels are -1 and 1, or 0
// and 1. This function and the next two apply fit_labels() (loss.h) and throw its errors.
Tensor hinge(const Tensor& y_true, const Tensor& y_pred);
// Returns the mean over the last axis of max(1 - y_true y_pred, 0)^2. Labels are those of hinge().
Tensor squared_hinge(const Tensor& y_true, const Tensor& y_pred);
// Returns max(0, 1 + max((1 - y_true) y_pred) - sum(y_true y_pred)), where the maximum and the sum
// are over the last axis. Labels are one-hot.
Tensor categorical_hinge(const Tensor& y_true, const Tensor& y_pred);
// Returns the circle loss, which pulls embeddings with the same label together and pushes the
// others apart (Sun et al. 2020). y_true [batch] or [batch, 1] holds class numbers; y_pred [batch,
// dim] holds vectors of length 1. Each sample is compared with the rest of its batch. The result's
// mask excludes samples whose loss is 0, such as samples without another sample of their label.
// Throws NotImplementedError for symbolic tensors with an unknown batch size.
Tensor circle(const Tensor& y_true, const Tensor& y_pred, bool remove_diagonal = true,
              double gamma = 80, double margin = 0.4);

}  // namespace losses

// The loss classes of the functions above that have no options of their own.
using HingeLoss = FormulaLoss<"Hinge", LossOptions<losses::hinge>>;
using SquaredHingeLoss = FormulaLoss<"SquaredHinge", LossOptions<losses::squared_hinge>>;
using CategoricalHingeLoss =
    FormulaLoss<"CategoricalHinge", LossOptions<losses::categorical_hinge>>;

// The options of losses::Circle; see losses::circle().
struct CircleLossOptions {
  double gamma = 80;            // scale of the similarities
  double margin = 0.4;          // relaxation of the thresholds for near and far pairs
  bool remove_diagonal = true;  // exclude the pair of a sample with itself
  std::string reduction = "sum_over_batch_size";
  std::string name = "circle";

  static constexpr void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("gamma", self.gamma);
    field("margin", self.margin);
    field("remove_diagonal", self.remove_diagonal);
  }
  bool sparse_labels(const Tensor&, const Tensor&) const { return true; }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return losses::circle(y_true, y_pred, remove_diagonal, gamma, margin);
  }
};
using CircleLoss = FormulaLoss<"Circle", CircleLossOptions>;

namespace losses {
// Handles to the losses, under Keras's names.
using Hinge = Handle<HingeLoss>;
using SquaredHinge = Handle<SquaredHingeLoss>;
using CategoricalHinge = Handle<CategoricalHingeLoss>;
using Circle = Handle<CircleLoss>;
}  // namespace losses

}  // namespace keel
