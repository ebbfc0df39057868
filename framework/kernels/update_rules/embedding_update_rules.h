// Update rules that only embedding engines have, and the names engines give to slots.
//
// g is the gradient, w the weight, lr Step::learning_rate; all is elementwise. Gradients of zero on
// slots of zero never give NaN. Parameters are checked where users give them.
#pragma once

#include <utility>

#include <keel/framework/base/shared_function.h>
#include <keel/framework/kernels/update_rules/update_rule.h>

namespace keel {

// A rule whose slots have the names that engines give them: "accumulators", "momenta",
// "velocities", "linears".
struct EngineRule final : UpdateRule {
  // One name for each slot of the base.
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

// a = beta2 a + (1 - beta2) g^2, but a += g^2 if beta2 is 1; u = g (a + epsilon)^(-1 / exponent);
// m = momentum m + u; w -= lr m, with nesterov w -= lr (momentum m + u).
struct AdagradMomentumRuleOptions {
  double momentum = 0;
  bool nesterov = false;
  double exponent = 2, beta2 = 1, epsilon = 1e-10;
};
struct AdagradMomentumRule final : UpdateRule {
  explicit AdagradMomentumRule(const AdagradMomentumRuleOptions& o) : options(o) {}
  const AdagradMomentumRuleOptions options;
  std::vector<Slot> slots() const override;  // "accumulators", "momenta"
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// m = momentum m + g; w -= lr m, with nesterov w -= lr (g + momentum m). The rate is outside the
// slot, unlike SGDRule's: a change of it acts at once.
struct MomentumRule final : UpdateRule {
  MomentumRule(double momentum_, bool nesterov_) : momentum(momentum_), nesterov(nesterov_) {}
  const double momentum;
  const bool nesterov;
  std::vector<Slot> slots() const override;  // "momenta"
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// ms += (1 - rho) (g^2 - ms); mom = momentum mom + lr g / sqrt(ms + epsilon); w -= mom.
struct RMSPropRule final : UpdateRule {
  RMSPropRule(double rho_, double momentum_, double epsilon_)
      : rho(rho_), momentum(momentum_), epsilon(epsilon_) {}
  const double rho, momentum, epsilon;
  std::vector<Slot> slots() const override;  // "ms", "mom"
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// a += g^2; e = lr / sqrt(a); x = w - e g; w = sign(x) max(|x| - e l1, 0) / (1 + e l2)
// (Duchi and Singer 2009).
struct ProximalAdagradRule final : UpdateRule {
  ProximalAdagradRule(double initial_accumulator_value_, double l1_, double l2_)
      : initial_accumulator_value(initial_accumulator_value_), l1(l1_), l2(l2_) {}
  const double initial_accumulator_value, l1, l2;
  std::vector<Slot> slots() const override;  // "accumulators"
  bool moves_without_gradient() const override { return l1 != 0 || l2 != 0; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// m = beta1 m + (1 - beta1) g; v += (1 - beta2) sign(g^2 - v) g^2; e = lr / (sqrt(v) + epsilon);
// x = w - e m; w = sign(x) max(|x| - e l1, 0) / (1 + e l2) (Zaheer et al. 2018). No bias
// correction.
struct ProximalYogiRuleOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-3;
  double l1 = 0, l2 = 0;
  double initial_accumulator_value = 1e-6;
};
struct ProximalYogiRule final : UpdateRule {
  explicit ProximalYogiRule(const ProximalYogiRuleOptions& o) : options(o) {}
  const ProximalYogiRuleOptions options;
  std::vector<Slot> slots() const override;  // "v", "m"
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// Estimates how many steps pass between two lookups of a row of one element. The rate is the number
// of the step; gradients are not looked at. With d = step - last and c = min(d, max_delta):
//   w = c if d >= outlier_threshold w, else w (1 - tau) + c tau;  last = step.
struct FrequencyEstimatorRuleOptions {
  double tau = 0, max_delta = 0, outlier_threshold = 0;
  double weight_exponent = 0;  // kept for records: no update uses it
};
struct FrequencyEstimatorRule final : UpdateRule {
  explicit FrequencyEstimatorRule(const FrequencyEstimatorRuleOptions& o) : options(o) {}
  const FrequencyEstimatorRuleOptions options;
  std::vector<Slot> slots() const override;  // "last_hit_step"
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
};

// What a custom computation sees of one row, and where it writes what becomes of it.
struct CustomRow {
  std::span<const float> gradient;
  std::span<float> row;
  std::span<float* const> slots;  // row.size() elements each
  double learning_rate = 0;
  std::span<const double> hyperparameters;

  std::span<float> slot(size_t i) const { return {slots[i], row.size()}; }
};
// Must depend on its argument alone: rows are stepped by several threads, in any order.
using CustomComputation = SharedFunction<void(const CustomRow&)>;

// The user's own rule, of whole rows: the n elements of one update are a row. Slots start at 0
// unless who makes them knows better. NotImplementedError for double.
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
