// Update rules of Keras's optimizers that need a whole variable at a time, and ScheduleFreeAdamW,
// whose slots start with the variable.
//
// In the formulas g is the gradient, w the weight, lr Step::learning_rate, and t the number of the
// step from 1. Parameters are checked where users set them, not here.
#pragma once

#include <string>
#include <vector>

#include <keel/framework/base/internal/regular_expression.h>
#include <keel/framework/whole_variable_rule.h>

namespace keel {

// Options of AdafactorRule, with the names of keras.optimizers.Adafactor.
struct AdafactorRuleOptions {
  double beta_2_decay = -0.8;
  double epsilon_1 = 1e-30, epsilon_2 = 1e-3;
  double clip_threshold = 1;
  bool relative_step = true;
};
// Adafactor (Shazeer and Stern 2018):
//   rho = min(lr, 1 / sqrt(t));  alpha = max(epsilon_2, rms(w)) rho;  b = 1 - t^beta_2_decay
//   u = g / sqrt(v);  w -= alpha u / max(1, rms(u) / clip_threshold)
// v is the average of g^2 + epsilon_1 with the factor b. For variables of rank 2 or higher it is
// the product of the averages of the rows and of the columns of the last two axes, divided by the
// mean of the rows. Without relative_step, rho is the same as with it, as in Keras.
struct AdafactorRule final : WholeVariableRule {
  explicit AdafactorRule(const AdafactorRuleOptions& o) : options(o) {}
  const AdafactorRuleOptions options;
  // "row" and "column", which are scalars for variables of rank 0 and 1, and "velocity" (v)
  std::vector<Slot> slots() const override;
  std::optional<Shape> slot_shape(size_t slot, const VariableInfo& variable) const override;
  void update_variable(float*, float*, float* const*, const VariableInfo&,
                       const Step&) const override;
  void update_variable(double*, double*, double* const*, const VariableInfo&,
                       const Step&) const override;
};

// Options of MuonRule, with the names of keras.optimizers.Muon.
struct MuonRuleOptions {
  double adam_beta_1 = 0.9, adam_beta_2 = 0.999, adam_weight_decay = 0.004, epsilon = 1e-7;
  std::vector<std::string> exclude_layers = {};  // regular expressions
  bool exclude_embeddings = true;
  double muon_a = 3.4445, muon_b = -4.775, muon_c = 2.0315;
  double adam_lr_ratio = 1, momentum = 0.95;
  int64_t ns_steps = 5;
  bool nesterov = true;
  std::optional<double> rms_rate = 0.2;
};
// Muon (Jordan 2024; Liu et al. 2025). Matrices take the step
//   m = momentum m + g;  u = orthogonalized(g + momentum m), or of m without nesterov
//   w -= lr rate u, with rate = rms_rate sqrt(max(rows, columns)), or 1 without rms_rate
// where `orthogonalized` divides by the Frobenius norm and applies ns_steps steps x = muon_a x +
// (muon_b y + muon_c y^2) x with y = x x^T. Variables of another rank, embeddings and variables
// whose path contains a match of exclude_layers take the step of Adam with adam_lr_ratio lr.
struct MuonRule final : WholeVariableRule {
  explicit MuonRule(const MuonRuleOptions& o);
  const MuonRuleOptions options;
  bool takes_adam_step(const VariableInfo& variable) const;
  std::vector<Slot> slots() const override;  // "momentum"; with Adam's step also "velocity"
  std::optional<Shape> slot_shape(size_t slot, const VariableInfo& variable) const override;
  double weight_decay(const VariableInfo& variable, double option) const override;
  void update_variable(float*, float*, float* const*, const VariableInfo&,
                       const Step&) const override;
  void update_variable(double*, double*, double* const*, const VariableInfo&,
                       const Step&) const override;

 private:
  std::vector<RegularExpression> excluded_;
};

// Options of ScheduleFreeAdamWRule.
struct ScheduleFreeAdamWRuleOptions {
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-8;
  int64_t warmup_steps = 0;
};
// Schedule-free AdamW (Defazio et al. 2024). z is the slot "momentum", which starts with w:
//   x = (w - (1 - b1) z) / b1;  v = b2 v + (1 - b2) g^2
//   z -= lr min(1, t / warmup_steps) g / (sqrt(v / (1 - b2^t)) + epsilon)
//   w = (1 - b1) z + b1 ((1 - 1/t) x + z / t)
struct ScheduleFreeAdamWRule final : UpdateRule, VariableSlots {
  explicit ScheduleFreeAdamWRule(const ScheduleFreeAdamWRuleOptions& o) : options(o) {}
  const ScheduleFreeAdamWRuleOptions options;
  std::vector<Slot> slots() const override;  // "momentum" (z), "velocity" (v)
  bool starts_with_variable(size_t slot) const override { return slot == 0; }
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

}  // namespace keel
