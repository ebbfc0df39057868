// Losses of probability distributions, other than the cross entropies.
#pragma once

#include <keel/layers/losses/loss.h>

namespace keel {

// The options of KLDivergenceLoss.
struct KLDivergenceLossOptions {
  std::string reduction = "sum_over_batch_size";
  std::string name = "kl_divergence";
  static void fields(auto& self, auto&& field) { loss_fields(self, field); }
};

// Computes the sum over the last axis of y_true log(y_true / y_pred), with both clipped to [1e-7,
// 1].
class KLDivergenceLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "KLDivergence";
  using Options = KLDivergenceLossOptions;
  explicit KLDivergenceLoss(Options options)
      : Loss(kClassName, options), options_(std::move(options)) {}
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

// The options of PoissonLoss.
struct PoissonLossOptions {
  std::string reduction = "sum_over_batch_size";
  std::string name = "poisson";
  static void fields(auto& self, auto&& field) { loss_fields(self, field); }
};

// Computes the mean over the last axis of y_pred - y_true log(y_pred + 1e-7).
class PoissonLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "Poisson";
  using Options = PoissonLossOptions;
  explicit PoissonLoss(Options options) : Loss(kClassName, options), options_(std::move(options)) {}
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

namespace losses {

// Handles to the losses, under Keras's names.
using KLDivergence = Handle<KLDivergenceLoss>;
using Poisson = Handle<PoissonLoss>;

// Return the loss of each sample. Labels and predictions must satisfy fit_labels().
Tensor kl_divergence(const Tensor& y_true, const Tensor& y_pred);
Tensor poisson(const Tensor& y_true, const Tensor& y_pred);

}  // namespace losses
}  // namespace keel
