// The update rules of SGD, Adagrad, Adam and FTRL, which Keras's optimizers and embedding engines
// share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <keel/framework/update_rule.h>

namespace keel {

// SGD: w -= lr g. With momentum (Sutskever et al. 2013):
//   m = momentum m - lr g;  w += m, or with nesterov w += momentum m - lr g
// There is no slot if momentum is 0.
struct SGDRule final : UpdateRule {
  explicit SGDRule(double momentum_ = 0, bool nesterov_ = false)
      : momentum(momentum_), nesterov(nesterov_) {}
  const double momentum;
  const bool nesterov;
  std::vector<Slot> slots() const override;
  bool moves_without_gradient() const override { return momentum != 0; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
  void update_rows(const TableRows&, const float*, const Step&) const override;
};

// Adagrad: a += g^2; w -= lr g / sqrt(a + epsilon) (Duchi et al. 2011; Keras's form). Embedding
// engines use epsilon 0.
struct AdagradRule final : UpdateRule {
  AdagradRule(double initial_accumulator_value_, double epsilon_)
      : initial_accumulator_value(initial_accumulator_value_), epsilon(epsilon_) {}
  const double initial_accumulator_value, epsilon;
  std::vector<Slot> slots() const override;
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
  void update_rows(const TableRows&, const float*, const Step&) const override;
};

// Adam (Kingma and Ba 2015, section 2):
//   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  w -= alpha m / (sqrt(v) + epsilon)
// with alpha = lr sqrt(1 - b2^t) / (1 - b1^t) and t from 1. Embedding engines use alpha = lr (no
// bias correction) and, with sum_inside_sqrt, sqrt(v + epsilon^2) as the divisor. With amsgrad the
// root is taken of the largest v so far (Reddi et al. 2018); sum_inside_sqrt must then be false.
struct AdamRuleOptions {
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
  bool bias_correction = true;
  bool sum_inside_sqrt = false;
  bool amsgrad = false;
};
// The rule of AdamRuleOptions.
struct AdamRule final : UpdateRule {
  explicit AdamRule(const AdamRuleOptions& o) : options(o) {}
  const AdamRuleOptions options;
  // The learning rate of a step, with the bias correction of the moments.
  double alpha(const Step& step) const;
  // "momentum", "velocity"; with amsgrad also "velocity_hat"
  std::vector<Slot> slots() const override;
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
  void update_rows(const TableRows&, const float*, const Step&) const override;
};

// FTRL-Proximal. With p = -learning_rate_power, a' = a + g^2, d = a'^p - a^p:
//   l' = l + g - d w / lr;  w = (clamp(l', -l1, l1) - l') / ((a'^p + beta) / lr + 2 l2)
// (McMahan et al. 2013). 0^p is 0 for p > 0. With multiply_linear_by_learning_rate the stored
// linear slot is lr times l', and lr = 0 is legal. l2_shrinkage adds 2 l2_shrinkage w to the g in
// l', but not to the g in a'.
struct FtrlRuleOptions {
  double learning_rate_power = -0.5;
  double initial_accumulator_value = 0.1;
  double l1 = 0, l2 = 0, beta = 0, l2_shrinkage = 0;
  bool multiply_linear_by_learning_rate = false;
  bool allow_zero_accumulator = false;  // has no effect: zeros are always allowed
};
// The rule of FtrlRuleOptions.
struct FtrlRule final : UpdateRule {
  explicit FtrlRule(const FtrlRuleOptions& o) : options(o) {}
  const FtrlRuleOptions options;
  std::vector<Slot> slots() const override;  // "accumulator", "linear"
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
  void update_rows(const TableRows&, const float*, const Step&) const override;
};

}  // namespace keel
