// Losses that compare numbers: errors, similarity of directions, and overlap of sets.
//
// Unless stated otherwise, a loss is a mean over the last axis: predictions [batch, n] give losses
// [batch]. Each function of the namespace losses returns the loss of each sample, without a
// reduction. It applies fit_labels() (loss.h) and throws its errors.
#pragma once

#include <optional>
#include <vector>

#include <keel/layers/losses/formula_loss.h>

namespace keel {
namespace losses {

// Returns the mean of (y_true - y_pred)^2.
Tensor mean_squared_error(const Tensor& y_true, const Tensor& y_pred);
// Returns the mean of |y_true - y_pred|.
Tensor mean_absolute_error(const Tensor& y_true, const Tensor& y_pred);
// Returns 100 times the mean of |y_true - y_pred| / max(|y_true|, 1e-7).
Tensor mean_absolute_percentage_error(const Tensor& y_true, const Tensor& y_pred);
// Returns the mean of (log(1 + max(y_true, 1e-7)) - log(1 + max(y_pred, 1e-7)))^2.
Tensor mean_squared_logarithmic_error(const Tensor& y_true, const Tensor& y_pred);
// Returns the mean of log(cosh(y_pred - y_true)).
Tensor log_cosh(const Tensor& y_true, const Tensor& y_pred);
// Returns the mean of e^2 / 2 where |e| <= delta, and of delta (|e| - delta / 2) elsewhere, for the
// error e = y_true - y_pred. Throws ValueError unless delta > 0.
Tensor huber(const Tensor& y_true, const Tensor& y_pred, double delta = 1.0);
// Returns minus the cosine of the angle between the vectors along `axis`: -1 for equal directions,
// 1 for opposite ones, and 0 if either vector is zero.
Tensor cosine_similarity(const Tensor& y_true, const Tensor& y_pred, int axis = -1);
// Returns the Dice loss of memberships in [0, 1]:
//   1 - 2 sum(y_true y_pred) / (sum(y_true) + sum(y_pred))
// The sums are over `axes`, or over all axes if it is empty; the result has the other axes.
Tensor dice(const Tensor& y_true, const Tensor& y_pred, const std::vector<int>& axes = {});
// Returns the Tversky loss of memberships in [0, 1]: 1 - tp / (tp + alpha fp + beta fn), where tp,
// fp and fn are the sums of y_true y_pred, (1 - y_true) y_pred and y_true (1 - y_pred) over `axes`,
// or over all axes if it is empty. This is the formula of Salehi et al. (2017) and Keras 3.16.
// Keras 3.4 to 3.15 weigh fn by alpha and fp by beta: exchange the two when porting code. Model
// files keep their loss: load_model() and save_model() exchange them.
Tensor tversky(const Tensor& y_true, const Tensor& y_pred, double alpha = 0.5, double beta = 0.5,
               const std::vector<int>& axes = {});

}  // namespace losses

// The loss classes of the functions above that have no options of their own.
using MeanSquaredErrorLoss =
    FormulaLoss<"MeanSquaredError", LossOptions<losses::mean_squared_error>>;
using MeanAbsoluteErrorLoss =
    FormulaLoss<"MeanAbsoluteError", LossOptions<losses::mean_absolute_error>>;
using MeanAbsolutePercentageErrorLoss =
    FormulaLoss<"MeanAbsolutePercentageError", LossOptions<losses::mean_absolute_percentage_error>>;
using MeanSquaredLogarithmicErrorLoss =
    FormulaLoss<"MeanSquaredLogarithmicError", LossOptions<losses::mean_squared_logarithmic_error>>;
using LogCoshLoss = FormulaLoss<"LogCosh", LossOptions<losses::log_cosh>>;

// The options of losses::Huber; see losses::huber().
struct HuberLossOptions {
  double delta = 1.0;  // > 0: the error where the loss turns from quadratic to linear
  std::string reduction = "sum_over_batch_size";
  std::string name = "huber_loss";

  static constexpr void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("delta", self.delta);
  }
  void check(const char* caller) const;
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return losses::huber(y_true, y_pred, delta);
  }
};
using HuberLoss = FormulaLoss<"Huber", HuberLossOptions>;

// The options of losses::CosineSimilarity; see losses::cosine_similarity().
struct CosineSimilarityLossOptions {
  int axis = -1;  // axis of the vectors
  std::string reduction = "sum_over_batch_size";
  std::string name = "cosine_similarity";

  static constexpr void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("axis", self.axis);
  }
  bool mixes_rows(int rank) const { return is_batch_axis(axis, rank); }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return losses::cosine_similarity(y_true, y_pred, axis);
  }
};
using CosineSimilarityLoss = FormulaLoss<"CosineSimilarity", CosineSimilarityLossOptions>;

// The options of losses::Dice; see losses::dice().
struct DiceLossOptions {
  std::optional<std::vector<int>> axis = {};  // unset: all axes, including the batch
  std::string reduction = "sum_over_batch_size";
  std::string name = "dice";

  static constexpr void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("axis", self.axis);
  }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return losses::dice(y_true, y_pred, axis.value_or(std::vector<int>()));
  }
};
using DiceLoss = FormulaLoss<"Dice", DiceLossOptions>;

// The options of losses::Tversky; see losses::tversky().
struct TverskyLossOptions {
  double alpha = 0.5;                         // weight of false positives
  double beta = 0.5;                          // weight of false negatives
  std::optional<std::vector<int>> axis = {};  // unset: all axes, including the batch
  std::string reduction = "sum_over_batch_size";
  std::string name = "tversky";

  static constexpr void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("alpha", self.alpha);
    field("beta", self.beta);
    field("axis", self.axis);
  }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return losses::tversky(y_true, y_pred, alpha, beta, axis.value_or(std::vector<int>()));
  }
};
using TverskyLoss = FormulaLoss<"Tversky", TverskyLossOptions>;

namespace losses {
// Handles to the losses, under Keras's names.
using MeanSquaredError = Handle<MeanSquaredErrorLoss>;
using MeanAbsoluteError = Handle<MeanAbsoluteErrorLoss>;
using MeanAbsolutePercentageError = Handle<MeanAbsolutePercentageErrorLoss>;
using MeanSquaredLogarithmicError = Handle<MeanSquaredLogarithmicErrorLoss>;
using LogCosh = Handle<LogCoshLoss>;
using Huber = Handle<HuberLoss>;
using CosineSimilarity = Handle<CosineSimilarityLoss>;
using Dice = Handle<DiceLoss>;
using Tversky = Handle<TverskyLoss>;
}  // namespace losses

}  // namespace keel
