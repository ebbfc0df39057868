// Focal cross entropies (Lin et al. 2018), which reduce the weight of samples that are already
// classified well.
#pragma once

#include <keel/layers/axes.h>
#include <keel/layers/losses/loss.h>

namespace keel {

// The options of BinaryFocalCrossentropyLoss.
struct BinaryFocalCrossentropyLossOptions {
  bool apply_class_balancing = false;  // weigh label 1 by alpha and label 0 by 1 - alpha
  double alpha = 0.25;
  double gamma = 2.0;          // power of the probability of the wrong class
  bool from_logits = false;    // true if y_pred holds values before the sigmoid
  double label_smoothing = 0;  // in [0, 1]: labels become y (1 - s) + s / 2
  int axis = -1;               // axis of the mean
  std::string reduction = "sum_over_batch_size";
  std::string name = "binary_focal_crossentropy";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("from_logits", self.from_logits);
    field("label_smoothing", self.label_smoothing);
    field("axis", self.axis);
    field("apply_class_balancing", self.apply_class_balancing);
    field("alpha", self.alpha);
    field("gamma", self.gamma);
  }
};

// Binary focal cross entropy: the mean over `axis` of (1 - t)^gamma times the binary cross entropy,
// where t = y p + (1 - y) (1 - p).
class BinaryFocalCrossentropyLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "BinaryFocalCrossentropy";
  using Options = BinaryFocalCrossentropyLossOptions;
  // Throws ValueError if label_smoothing is outside of [0, 1].
  explicit BinaryFocalCrossentropyLoss(Options options);
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  bool mixes_rows(int rank) const override { return is_batch_axis(options_.axis, rank); }
  const Options options_;
};

// The options of CategoricalFocalCrossentropyLoss.
struct CategoricalFocalCrossentropyLossOptions {
  ScalarOrList alpha = 0.25;   // a factor, or one factor per class
  double gamma = 2.0;          // power of the factor 1 - p
  bool from_logits = false;    // true if y_pred holds values before the softmax
  double label_smoothing = 0;  // in [0, 1]: labels become y (1 - s) + s / classes
  int axis = -1;               // axis of the classes
  std::string reduction = "sum_over_batch_size";
  std::string name = "categorical_focal_crossentropy";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("from_logits", self.from_logits);
    field("label_smoothing", self.label_smoothing);
    field("axis", self.axis);
    field("alpha", self.alpha);
    field("gamma", self.gamma);
  }
};

// Categorical focal cross entropy: minus the sum over the classes of alpha (1 - p)^gamma y log p,
// where p is first scaled to sum to 1. Labels and predictions have the same shape. Throws
// ValueError if a list of alphas does not have one number per class.
class CategoricalFocalCrossentropyLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "CategoricalFocalCrossentropy";
  using Options = CategoricalFocalCrossentropyLossOptions;
  // Throws ValueError if label_smoothing is outside of [0, 1].
  explicit CategoricalFocalCrossentropyLoss(Options options);
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  bool mixes_rows(int rank) const override { return is_batch_axis(options_.axis, rank); }
  const Options options_;
};

namespace losses {

// Handles to the losses, under Keras's names.
using BinaryFocalCrossentropy = Handle<BinaryFocalCrossentropyLoss>;
using CategoricalFocalCrossentropy = Handle<CategoricalFocalCrossentropyLoss>;

// Return the loss of each sample. Labels and predictions must satisfy fit_labels().
Tensor binary_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                 bool apply_class_balancing = false, double alpha = 0.25,
                                 double gamma = 2.0, bool from_logits = false,
                                 double label_smoothing = 0, int axis = -1);
Tensor categorical_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                      const ScalarOrList& alpha = 0.25, double gamma = 2.0,
                                      bool from_logits = false, double label_smoothing = 0,
                                      int axis = -1);

}  // namespace losses
}  // namespace keel
