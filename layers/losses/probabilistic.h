// Losses of predicted probabilities other than plain cross entropies: focal cross entropies, the
// Kullback-Leibler divergence and the Poisson loss.
//
// from_logits and label_smoothing have the same meaning as in crossentropy.h. Each function of the
// namespace losses returns the loss of each sample, without a reduction. It applies fit_labels()
// (loss.h) and throws its errors.
#pragma once

#include <keel/layers/axes.h>
#include <keel/layers/losses/crossentropy.h>

namespace keel {
namespace losses {

// Returns the mean over `axis` of (1 - t)^gamma times the binary cross entropy, where
// t = y p + (1 - y) (1 - p). Samples that are already classified well thereby get less weight (Lin
// et al. 2018). With apply_class_balancing, label 1 is weighted by alpha and label 0 by 1 - alpha.
Tensor binary_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                 bool apply_class_balancing = false, double alpha = 0.25,
                                 double gamma = 2.0, bool from_logits = false,
                                 double label_smoothing = 0, int axis = -1);
// Returns minus the sum over the classes, at `axis`, of alpha (1 - p)^gamma y log p. Probabilities
// are first scaled to sum to 1. Throws ValueError if a list of alphas does not have one number per
// class.
Tensor categorical_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                      const ScalarOrList& alpha = 0.25, double gamma = 2.0,
                                      bool from_logits = false, double label_smoothing = 0,
                                      int axis = -1);
// Returns the sum over the last axis of y_true log(y_true / y_pred), with both clipped to [1e-7,
// 1].
Tensor kl_divergence(const Tensor& y_true, const Tensor& y_pred);
// Returns the mean over the last axis of y_pred - y_true log(y_pred + 1e-7).
Tensor poisson(const Tensor& y_true, const Tensor& y_pred);

}  // namespace losses

// The loss classes of the functions above that have no options of their own.
using KLDivergenceLoss = FormulaLoss<"KLDivergence", LossOptions<losses::kl_divergence>>;
using PoissonLoss = FormulaLoss<"Poisson", LossOptions<losses::poisson>>;

// The options of losses::BinaryFocalCrossentropy.
struct BinaryFocalCrossentropyLossOptions {
  bool apply_class_balancing = false;  // weigh label 1 by alpha and label 0 by 1 - alpha
  double alpha = 0.25;                 // has no effect without apply_class_balancing
  double gamma = 2.0;                  // power of the probability of the wrong class
  bool from_logits = false;            // true if y_pred holds logits
  double label_smoothing = 0;          // in [0, 1]
  int axis = -1;                       // axis of the mean
  std::string reduction = "sum_over_batch_size";
  std::string name = "binary_focal_crossentropy";

  static constexpr void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("from_logits", self.from_logits);
    field("label_smoothing", self.label_smoothing);
    field("axis", self.axis);
    field("apply_class_balancing", self.apply_class_balancing);
    field("alpha", self.alpha);
    field("gamma", self.gamma);
  }
  void check(const char* caller) const { internal::check_label_smoothing(caller, label_smoothing); }
  bool mixes_rows(int rank) const { return is_batch_axis(axis, rank); }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return losses::binary_focal_crossentropy(y_true, y_pred, apply_class_balancing, alpha, gamma,
                                             from_logits, label_smoothing, axis);
  }
};
using BinaryFocalCrossentropyLoss =
    FormulaLoss<"BinaryFocalCrossentropy", BinaryFocalCrossentropyLossOptions>;

// The options of losses::CategoricalFocalCrossentropy.
struct CategoricalFocalCrossentropyLossOptions {
  ScalarOrList alpha = 0.25;   // a factor, or one factor per class
  double gamma = 2.0;          // power of the factor 1 - p
  bool from_logits = false;    // true if y_pred holds logits
  double label_smoothing = 0;  // in [0, 1]
  int axis = -1;               // axis of the classes
  std::string reduction = "sum_over_batch_size";
  std::string name = "categorical_focal_crossentropy";

  static constexpr void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("from_logits", self.from_logits);
    field("label_smoothing", self.label_smoothing);
    field("axis", self.axis);
    field("alpha", self.alpha);
    field("gamma", self.gamma);
  }
  void check(const char* caller) const { internal::check_label_smoothing(caller, label_smoothing); }
  bool mixes_rows(int rank) const { return is_batch_axis(axis, rank); }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return losses::categorical_focal_crossentropy(y_true, y_pred, alpha, gamma, from_logits,
                                                  label_smoothing, axis);
  }
};
using CategoricalFocalCrossentropyLoss =
    FormulaLoss<"CategoricalFocalCrossentropy", CategoricalFocalCrossentropyLossOptions>;

namespace losses {
// Handles to the losses, under Keras's names.
using KLDivergence = Handle<KLDivergenceLoss>;
using Poisson = Handle<PoissonLoss>;
using BinaryFocalCrossentropy = Handle<BinaryFocalCrossentropyLoss>;
using CategoricalFocalCrossentropy = Handle<CategoricalFocalCrossentropyLoss>;
}  // namespace losses

}  // namespace keel
