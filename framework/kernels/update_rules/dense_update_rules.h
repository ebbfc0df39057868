// Update rules that only dense variables have: the optimizers of Keras that embedding engines do
// not offer.
//
// In the formulas g is the gradient, w the weight, lr Step::learning_rate, and t the number of the
// step from 1. Slots start at 0. Zero gradients on zero slots never give NaN. Parameters are
// checked where users set them, not here. Every rule may change every element in every step.
#pragma once

#include <keel/framework/update_rule.h>

namespace keel {

// RMSprop (Tieleman and Hinton 2012; Keras's form):
//   v = rho v + (1 - rho) g^2;  d = v + epsilon;  w -= lr g / sqrt(d)
// If centered, a = rho a + (1 - rho) g and d = v + epsilon - a^2. With momentum,
// m = momentum m + lr g / sqrt(d) and w -= m. Embedding engines have a different form, RMSPropRule.
struct KerasRMSpropRuleOptions {
  double rho = 0.9, momentum = 0, epsilon = 1e-7;
  bool centered = false;
};
// The rule of KerasRMSpropRuleOptions.
struct KerasRMSpropRule final : UpdateRule {
  explicit KerasRMSpropRule(const KerasRMSpropRuleOptions& o) : options(o) {}
  const KerasRMSpropRuleOptions options;
  // "velocity"; with momentum also "momentum"; if centered also "average_gradient"
  std::vector<Slot> slots() const override;
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// Adadelta (Zeiler 2012):
//   a = rho a + (1 - rho) g^2;  u = -g sqrt(d + epsilon) / sqrt(a + epsilon);
//   d = rho d + (1 - rho) u^2;  w += lr u
struct AdadeltaRule final : UpdateRule {
  AdadeltaRule(double rho_, double epsilon_) : rho(rho_), epsilon(epsilon_) {}
  const double rho, epsilon;
  std::vector<Slot> slots() const override;  // "accumulated_grad", "accumulated_delta_var"
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// Options of the rules with Adam's moments: Adamax, Nadam and Lamb.
struct MomentRuleOptions {
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
};

// Adamax (Kingma and Ba 2015, section 7):
//   m = b1 m + (1 - b1) g;  u = max(b2 u, |g|);  w -= lr m / ((1 - b1^t) (u + epsilon))
struct AdamaxRule final : UpdateRule {
  explicit AdamaxRule(const MomentRuleOptions& o) : options(o) {}
  const MomentRuleOptions options;
  std::vector<Slot> slots() const override;  // "momentum", "norm"
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// Nadam: m and v as in Adam. With mu_t = b1 (1 - 0.96^t / 2) and P_t the product mu_1 ... mu_t:
//   w -= lr (mu_{t+1} m / (1 - P_{t+1}) + (1 - mu_t) g / (1 - P_t)) / (sqrt(v / (1 - b2^t)) +
//   epsilon)
// (Dozat 2016). P_t is the shared slot "u_product".
struct NadamRule final : UpdateRule {
  explicit NadamRule(const MomentRuleOptions& o) : options(o) {}
  const MomentRuleOptions options;
  double rate_of_momentum(const Step& step) const;  // the factor of m
  std::vector<Slot> slots() const override;         // "momentum", "velocity"
  std::vector<Slot> shared_slots() const override;
  void step_shared(std::span<double> shared, const Step& step) const override;
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// Lion: w -= lr sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g (Chen et al. 2023). sign(0) is 0.
struct LionRule final : UpdateRule {
  LionRule(double beta_1_, double beta_2_) : beta_1(beta_1_), beta_2(beta_2_) {}
  const double beta_1, beta_2;
  std::vector<Slot> slots() const override;  // "momentum"
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// Lamb: m and v as in Adam; u = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon) (You et al.
// 2020).
struct LambRule final : LayerwiseRule {
  explicit LambRule(const MomentRuleOptions& o) : options(o) {}
  const MomentRuleOptions options;
  std::vector<Slot> slots() const override;  // "momentum", "velocity"
  void direct(float* gradient, float* const* slots, int64_t n, const Step&) const override;
  void direct(double* gradient, double* const* slots, int64_t n, const Step&) const override;
};

}  // namespace keel
