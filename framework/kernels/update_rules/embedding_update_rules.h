// Update rules that only embedding engines have, and the slot names of engines.
//
// In the formulas g is the gradient, w the weight and lr Step::learning_rate; all operations are
// elementwise. Zero gradients on zero slots never give NaN. Parameters are checked where users set
// them, not here.
#pragma once

#include <utility>

#include <keel/framework/kernels/update_rules/basic_update_rules.h>
#include <keel/framework/update_rule.h>

namespace keel {

// A rule with the slot names of embedding engines: "accumulators", "momenta", "velocities",
// "linears".
struct EngineRule final : UpdateRule {
  // `slot_names_` has one name for each slot of `base_`.
  EngineRule(std::shared_ptr<const UpdateRule> base_, std::vector<std::string> slot_names_)
      : base(std::move(base_)), slot_names(std::move(slot_names_)) {}
  const std::shared_ptr<const UpdateRule> base;
  const std::vector<std::string> slot_names;
  std::vector<Slot> slots() const override;
  bool moves_without_gradient() const override { return base->moves_without_gradient(); }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
  void update_rows(const TableRows& table, const float* gradients,
                   const Step& step) const override {
    base->update_rows(table, gradients, step);
  }
};

// Adagrad with momentum:
//   a = beta2 a + (1 - beta2) g^2, or a += g^2 if beta2 is 1;
//   u = g (a + epsilon)^(-1 / exponent);  m = momentum m + u;
//   w -= lr m, or with nesterov w -= lr (momentum m + u)
struct AdagradMomentumRuleOptions {
  double momentum = 0;
  bool nesterov = false;
  double exponent = 2, beta2 = 1, epsilon = 1e-10;
};
// The rule of AdagradMomentumRuleOptions.
struct AdagradMomentumRule final : UpdateRule {
  explicit AdagradMomentumRule(const AdagradMomentumRuleOptions& o) : options(o) {}
  const AdagradMomentumRuleOptions options;
  std::vector<Slot> slots() const override;  // "accumulators", "momenta"
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// SGD with momentum: m = momentum m + g; w -= lr m, with nesterov w -= lr (g + momentum m). Unlike
// SGDRule's slot, m does not contain the learning rate, so a change of the rate takes effect at
// once.
struct MomentumRule final : UpdateRule {
  MomentumRule(double momentum_, bool nesterov_) : momentum(momentum_), nesterov(nesterov_) {}
  const double momentum;
  const bool nesterov;
  std::vector<Slot> slots() const override;  // "momenta"
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// RMSProp: ms += (1 - rho) (g^2 - ms); mom = momentum mom + lr g / sqrt(ms + epsilon); w -= mom.
struct RMSPropRule final : UpdateRule {
  RMSPropRule(double rho_, double momentum_, double epsilon_)
      : rho(rho_), momentum(momentum_), epsilon(epsilon_) {}
  const double rho, momentum, epsilon;
  std::vector<Slot> slots() const override;  // "ms", "mom"
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// Proximal Adagrad (Duchi and Singer 2009):
//   a += g^2;  e = lr / sqrt(a);  x = w - e g;  w = sign(x) max(|x| - e l1, 0) / (1 + e l2)
struct ProximalAdagradRule final : UpdateRule {
  ProximalAdagradRule(double initial_accumulator_value_, double l1_, double l2_)
      : initial_accumulator_value(initial_accumulator_value_), l1(l1_), l2(l2_) {}
  const double initial_accumulator_value, l1, l2;
  std::vector<Slot> slots() const override;  // "accumulators"
  bool moves_without_gradient() const override { return l1 != 0 || l2 != 0; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// Proximal Yogi (Zaheer et al. 2018), without bias correction:
//   m = beta1 m + (1 - beta1) g;  v += (1 - beta2) sign(g^2 - v) g^2;
//   e = lr / (sqrt(v) + epsilon);  x = w - e m;  w = sign(x) max(|x| - e l1, 0) / (1 + e l2)
struct ProximalYogiRuleOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-3;
  double l1 = 0, l2 = 0;
  double initial_accumulator_value = 1e-6;
};
// The rule of ProximalYogiRuleOptions.
struct ProximalYogiRule final : UpdateRule {
  explicit ProximalYogiRule(const ProximalYogiRuleOptions& o) : options(o) {}
  const ProximalYogiRuleOptions options;
  std::vector<Slot> slots() const override;  // "v", "m"
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// Frequency estimator: estimates the number of steps between two lookups of a row that has one
// element. Step::learning_rate is the number of the step; gradients are not read. With
// d = step - last and c = min(d, max_delta):
//   w = c if d >= outlier_threshold w, else w (1 - tau) + c tau;  last = step.
struct FrequencyEstimatorRuleOptions {
  double tau = 0, max_delta = 0, outlier_threshold = 0;
  double weight_exponent = 0;  // stored in configurations only; no update uses it
};
// The rule of FrequencyEstimatorRuleOptions.
struct FrequencyEstimatorRule final : UpdateRule {
  explicit FrequencyEstimatorRule(const FrequencyEstimatorRuleOptions& o) : options(o) {}
  const FrequencyEstimatorRuleOptions options;
  std::vector<Slot> slots() const override;  // "last_hit_step"
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// LaProp (Ziyin et al. 2020), with d = beta2 (1 - beta2^t) / (1 - beta2^(t + 1)) if the first
// hyperparameter of the step is the number t of completed steps, and d = beta2 without it:
//   v = d v + (1 - d) (g^2 + epsilon);  m = beta1 m + sqrt(1 - beta1^2) g / sqrt(v);  w -= lr m
struct LaPropRuleOptions {
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-30;
  double initial_slot_value = 0;  // of both slots
};
// The rule of LaPropRuleOptions.
struct LaPropRule final : UpdateRule {
  explicit LaPropRule(const LaPropRuleOptions& o) : options(o) {}
  const LaPropRuleOptions options;
  std::vector<Slot> slots() const override;  // "mu" (m), "nu" (v)
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// Adagrad whose rate grows with the rarity of a row (F2A of jax-tpu-embedding). The first
// hyperparameter is the number s of the step, and k counts the updates of a row:
//   k += 1;  a += g^2;  f = min((max(s, 1) / k)^rho, max_lr_multiplier);
//   w -= lr (f g / sqrt(a) + l1 sign(w) + l2 w)
struct F2ARuleOptions {
  double rho = 0.5, l1 = 0, l2 = 0, max_lr_multiplier = 1e6;
  double initial_accumulator_value = 0.1, initial_local_step_value = 0;
};
// The rule of F2ARuleOptions.
struct F2ARule final : UpdateRule {
  explicit F2ARule(const F2ARuleOptions& o) : options(o) {}
  const F2ARuleOptions options;
  std::vector<Slot> slots() const override;  // "accumulators" (a), "local_steps" (k)
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// Row-wise Adagrad, with one accumulator for each row (the "exact row-wise Adagrad" of FBGEMM): the
// n elements of one update are a row.
//   a += mean(g^2);  w -= lr g / (sqrt(a) + epsilon)
struct RowwiseAdagradRule final : UpdateRule {
  RowwiseAdagradRule(double initial_accumulator_value_, double epsilon_)
      : initial_accumulator_value(initial_accumulator_value_), epsilon(epsilon_) {}
  const double initial_accumulator_value, epsilon;
  std::vector<Slot> slots() const override;  // "accumulators", one value per row
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// A user-defined rule for whole rows: the n elements of one update are a row. Slots start at 0
// unless the creator of the table sets other initial values. The double update() throws
// NotImplementedError.
struct CustomRule final : UpdateRule {
  CustomRule(CustomComputation computation_, std::vector<std::string> slot_names_)
      : computation(std::move(computation_)), slot_names(std::move(slot_names_)) {}
  const CustomComputation computation;
  const std::vector<std::string> slot_names;
  std::vector<Slot> slots() const override;
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

}  // namespace keel
