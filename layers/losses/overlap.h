// Overlap losses: measure how little two sets, given as memberships in [0, 1], have in common.
#pragma once

#include <optional>
#include <vector>

#include <keel/layers/losses/loss.h>

namespace keel {

// The options of DiceLoss.
struct DiceLossOptions {
  // The axes of the sums. Unset: all axes, including the batch.
  std::optional<std::vector<int>> axis = {};
  std::string reduction = "sum_over_batch_size";
  std::string name = "dice";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("axis", self.axis);
  }
};

// Dice loss: 1 - 2 sum(y_true y_pred) / (sum(y_true) + sum(y_pred)).
class DiceLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "Dice";
  using Options = DiceLossOptions;
  explicit DiceLoss(Options options) : Loss(kClassName, options), options_(std::move(options)) {}
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

// The options of TverskyLoss.
struct TverskyLossOptions {
  double alpha = 0.5;  // weight of false positives
  double beta = 0.5;   // weight of false negatives
  // The axes of the sums. Unset: all axes, including the batch.
  std::optional<std::vector<int>> axis = {};
  std::string reduction = "sum_over_batch_size";
  std::string name = "tversky";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("alpha", self.alpha);
    field("beta", self.beta);
    field("axis", self.axis);
  }
};

// Tversky loss: 1 - tp / (tp + alpha fp + beta fn), where tp, fp and fn are the sums of y_true
// y_pred, (1 - y_true) y_pred and y_true (1 - y_pred).
class TverskyLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "Tversky";
  using Options = TverskyLossOptions;
  explicit TverskyLoss(Options options) : Loss(kClassName, options), options_(std::move(options)) {}
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

namespace losses {

// Handles to the losses, under Keras's names.
using Dice = Handle<DiceLoss>;
using Tversky = Handle<TverskyLoss>;

// Return the losses of labels and predictions that satisfy fit_labels(). The sums are over all axes
// if `axes` is empty.
Tensor dice(const Tensor& y_true, const Tensor& y_pred, const std::vector<int>& axes = {});
Tensor tversky(const Tensor& y_true, const Tensor& y_pred, double alpha = 0.5, double beta = 0.5,
               const std::vector<int>& axes = {});

}  // namespace losses
}  // namespace keel
