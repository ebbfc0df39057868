// Regression losses. Each one is a mean over the last axis: predictions [batch, n] give losses
// [batch]. Labels and predictions must have the same shape after fit_labels() (loss.h). For the
// values of `reduction` see Reduction (loss.h).
#pragma once

#include <keel/layers/losses/loss.h>

namespace keel {

// The options of MeanSquaredErrorLoss.
struct MeanSquaredErrorLossOptions {
  std::string reduction = "sum_over_batch_size";
  std::string name = "mean_squared_error";
  static void fields(auto& self, auto&& field) { loss_fields(self, field); }
};

// Computes the mean of (y_true - y_pred)^2.
class MeanSquaredErrorLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "MeanSquaredError";
  using Options = MeanSquaredErrorLossOptions;
  explicit MeanSquaredErrorLoss(Options options)
      : Loss(kClassName, options), options_(std::move(options)) {}
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

// The options of MeanAbsoluteErrorLoss.
struct MeanAbsoluteErrorLossOptions {
  std::string reduction = "sum_over_batch_size";
  std::string name = "mean_absolute_error";
  static void fields(auto& self, auto&& field) { loss_fields(self, field); }
};

// Computes the mean of |y_true - y_pred|.
class MeanAbsoluteErrorLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "MeanAbsoluteError";
  using Options = MeanAbsoluteErrorLossOptions;
  explicit MeanAbsoluteErrorLoss(Options options)
      : Loss(kClassName, options), options_(std::move(options)) {}
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

// The options of MeanAbsolutePercentageErrorLoss.
struct MeanAbsolutePercentageErrorLossOptions {
  std::string reduction = "sum_over_batch_size";
  std::string name = "mean_absolute_percentage_error";
  static void fields(auto& self, auto&& field) { loss_fields(self, field); }
};

// Computes 100 times the mean of |y_true - y_pred| / max(|y_true|, 1e-7).
class MeanAbsolutePercentageErrorLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "MeanAbsolutePercentageError";
  using Options = MeanAbsolutePercentageErrorLossOptions;
  explicit MeanAbsolutePercentageErrorLoss(Options options)
      : Loss(kClassName, options), options_(std::move(options)) {}
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

// The options of MeanSquaredLogarithmicErrorLoss.
struct MeanSquaredLogarithmicErrorLossOptions {
  std::string reduction = "sum_over_batch_size";
  std::string name = "mean_squared_logarithmic_error";
  static void fields(auto& self, auto&& field) { loss_fields(self, field); }
};

// Computes the mean of (log(1 + max(y_true, 1e-7)) - log(1 + max(y_pred, 1e-7)))^2.
class MeanSquaredLogarithmicErrorLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "MeanSquaredLogarithmicError";
  using Options = MeanSquaredLogarithmicErrorLossOptions;
  explicit MeanSquaredLogarithmicErrorLoss(Options options)
      : Loss(kClassName, options), options_(std::move(options)) {}
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

// The options of HuberLoss.
struct HuberLossOptions {
  double delta = 1.0;  // > 0
  std::string reduction = "sum_over_batch_size";
  std::string name = "huber_loss";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("delta", self.delta);
  }
};

// Computes the mean of e^2 / 2 where |e| <= delta, and delta (|e| - delta / 2) elsewhere, for the
// error e = y_true - y_pred.
class HuberLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "Huber";
  using Options = HuberLossOptions;
  // Throws ValueError unless delta > 0.
  explicit HuberLoss(Options options);
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

// The options of LogCoshLoss.
struct LogCoshLossOptions {
  std::string reduction = "sum_over_batch_size";
  std::string name = "log_cosh";
  static void fields(auto& self, auto&& field) { loss_fields(self, field); }
};

// Computes the mean of log(cosh(y_pred - y_true)).
class LogCoshLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "LogCosh";
  using Options = LogCoshLossOptions;
  explicit LogCoshLoss(Options options) : Loss(kClassName, options), options_(std::move(options)) {}
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

namespace losses {

// Handles to the losses, under Keras's names.
using MeanSquaredError = Handle<MeanSquaredErrorLoss>;
using MeanAbsoluteError = Handle<MeanAbsoluteErrorLoss>;
using MeanAbsolutePercentageError = Handle<MeanAbsolutePercentageErrorLoss>;
using MeanSquaredLogarithmicError = Handle<MeanSquaredLogarithmicErrorLoss>;
using Huber = Handle<HuberLoss>;
using LogCosh = Handle<LogCoshLoss>;

// Return the loss of each sample, without a reduction. They apply fit_labels() and throw its
// errors. huber() requires delta > 0.
Tensor mean_squared_error(const Tensor& y_true, const Tensor& y_pred);
Tensor mean_absolute_error(const Tensor& y_true, const Tensor& y_pred);
Tensor mean_absolute_percentage_error(const Tensor& y_true, const Tensor& y_pred);
Tensor mean_squared_logarithmic_error(const Tensor& y_true, const Tensor& y_pred);
Tensor huber(const Tensor& y_true, const Tensor& y_pred, double delta = 1.0);
Tensor log_cosh(const Tensor& y_true, const Tensor& y_pred);

}  // namespace losses
}  // namespace keel
