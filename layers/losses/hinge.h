// Hinge losses: penalize predictions that are not on the correct side of zero by a margin.
#pragma once

#include <keel/layers/losses/loss.h>

namespace keel {

// The options of HingeLoss.
struct HingeLossOptions {
  std::string reduction = "sum_over_batch_size";
  std::string name = "hinge";
  static void fields(auto& self, auto&& field) { loss_fields(self, field); }
};

// Computes the mean over the last axis of max(1 - y_true y_pred, 0). Labels are -1 and 1, or 0
// and 1.
class HingeLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "Hinge";
  using Options = HingeLossOptions;
  explicit HingeLoss(Options options) : Loss(kClassName, options), options_(std::move(options)) {}
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

// The options of SquaredHingeLoss.
struct SquaredHingeLossOptions {
  std::string reduction = "sum_over_batch_size";
  std::string name = "squared_hinge";
  static void fields(auto& self, auto&& field) { loss_fields(self, field); }
};

// Computes the mean over the last axis of max(1 - y_true y_pred, 0)^2. Labels are -1 and 1, or 0
// and 1.
class SquaredHingeLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "SquaredHinge";
  using Options = SquaredHingeLossOptions;
  explicit SquaredHingeLoss(Options options)
      : Loss(kClassName, options), options_(std::move(options)) {}
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

// The options of CategoricalHingeLoss.
struct CategoricalHingeLossOptions {
  std::string reduction = "sum_over_batch_size";
  std::string name = "categorical_hinge";
  static void fields(auto& self, auto&& field) { loss_fields(self, field); }
};

// max(0, 1 + max((1 - y_true) y_pred) - sum(y_true y_pred)), where the maximum and the sum are over
// the last axis. Labels are one-hot.
class CategoricalHingeLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "CategoricalHinge";
  using Options = CategoricalHingeLossOptions;
  explicit CategoricalHingeLoss(Options options)
      : Loss(kClassName, options), options_(std::move(options)) {}
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

namespace losses {

// Handles to the losses, under Keras's names.
using Hinge = Handle<HingeLoss>;
using SquaredHinge = Handle<SquaredHingeLoss>;
using CategoricalHinge = Handle<CategoricalHingeLoss>;

// Return the loss of each sample. Labels and predictions must satisfy fit_labels().
Tensor hinge(const Tensor& y_true, const Tensor& y_pred);
Tensor squared_hinge(const Tensor& y_true, const Tensor& y_pred);
Tensor categorical_hinge(const Tensor& y_true, const Tensor& y_pred);

}  // namespace losses
}  // namespace keel
