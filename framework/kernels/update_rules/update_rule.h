// UpdateRule: the arithmetic of an optimizer on each element of a parameter.
//
// Dense variables, sparse rows of a variable and shards of an embedding engine are all updated
// by the same rule, so they agree bit for bit. One rule object serves any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace keel {

// State that a rule keeps beside each element.
struct Slot {
  std::string name;  // "accumulator", "momentum", ...; the name in files
  double initial = 0;
  // Where Keras's files have it: they hold the slots of a group variable by variable, those of each
  // variable side by side, and one group after the other.
  int group = 0;
};

// What changes from step to step.
struct Step {
  double learning_rate = 0;
  int64_t iteration = 0;                         // completed steps, from 0
  std::span<const double> hyperparameters = {};  // of custom rules
  std::span<const double> shared = {};           // UpdateRule::shared_slots() in this step
};

// Rows of a table that are stepped one after the other: row i is the `dim` elements from
// rows[i] * row_step on, of the values and of each slot.
struct TableRows {
  float* values;
  float* const* slots;
  int64_t dim, row_step;
  std::span<const int64_t> rows;
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  virtual std::vector<Slot> slots() const { return {}; }
  // True if an element with a zero gradient, or its slots, may still change, so that leaving out
  // the rows a sparse gradient does not name is another optimizer.
  virtual bool moves_without_gradient() const { return false; }
  // State that is one for all elements of all variables, and its step, which comes before theirs.
  virtual std::vector<Slot> shared_slots() const { return {}; }
  virtual void step_shared(std::span<double> /*shared*/, const Step&) const {}
  // Updates n elements in place; slots[i] is the i-th of slots(), n elements each.
  virtual void update(float* value, const float* gradient, float* const* slots, int64_t n,
                      const Step& step) const = 0;
  virtual void update(double* value, const double* gradient, double* const* slots, int64_t n,
                      const Step& step) const = 0;
  // Updates row i by gradients[i * dim], ...: what update() of each gives, bit for bit.
  virtual void update_rows(const TableRows& table, const float* gradients, const Step& step) const;
};

// A rule whose steps have a length of their own in each variable: w -= ratio lr u, where u is what
// the elements make of their gradients, and ratio is |w| / |u| over the whole variable.
class LayerwiseRule : public UpdateRule {
 public:
  bool moves_without_gradient() const override { return true; }
  // Updates the slots of n elements and replaces their gradients by u.
  virtual void direct(float* gradient, float* const* slots, int64_t n, const Step& step) const = 0;
  virtual void direct(double* gradient, double* const* slots, int64_t n,
                      const Step& step) const = 0;
  // Of sums of squares; 1 if one of them is 0.
  static double ratio(double squares_of_w, double squares_of_u);
  // The n elements are a whole variable.
  void update(float*, const float*, float* const*, int64_t, const Step&) const final;
  void update(double*, const double*, double* const*, int64_t, const Step&) const final;
};

// w -= lr g; with momentum m = momentum m - lr g, w += m, or with nesterov
// w += momentum m - lr g (Sutskever et al. 2013). No slot if momentum is 0.
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

// a += g^2; w -= lr g / sqrt(a + epsilon) (Duchi et al. 2011; Keras's form). Embedding engines
// use epsilon 0.
struct AdagradRule final : UpdateRule {
  AdagradRule(double initial_accumulator_value_, double epsilon_)
      : initial_accumulator_value(initial_accumulator_value_), epsilon(epsilon_) {}
  const double initial_accumulator_value, epsilon;
  std::vector<Slot> slots() const override;
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
  void update_rows(const TableRows&, const float*, const Step&) const override;
};

// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; w -= alpha m / (sqrt(v) + epsilon), with
// alpha = lr sqrt(1 - b2^t) / (1 - b1^t), t from 1 (Kingma and Ba 2015, section 2). Embedding
// engines take alpha = lr, and sqrt(v + epsilon^2) if sum_inside_sqrt. With amsgrad the largest v
// so far stands in the root (Reddi et al. 2018), which must then have epsilon outside.
struct AdamRuleOptions {
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
  bool bias_correction = true;
  bool sum_inside_sqrt = false;
  bool amsgrad = false;
};
struct AdamRule final : UpdateRule {
  explicit AdamRule(const AdamRuleOptions& o) : options(o) {}
  const AdamRuleOptions options;
  double alpha(const Step& step) const;
  std::vector<Slot> slots() const override;  // "momentum", "velocity"; amsgrad: "velocity_hat"
  bool moves_without_gradient() const override { return true; }
  void update(float*, const float*, float* const*, int64_t, const Step&) const override;
  void update(double*, const double*, double* const*, int64_t, const Step&) const override;
  void update_rows(const TableRows&, const float*, const Step&) const override;
};

// With p = -learning_rate_power, a' = a + g^2, d = a'^p - a^p:
//   l' = l + g - d w / lr;  w = (clamp(l', -l1, l1) - l') / ((a'^p + beta) / lr + 2 l2)
// (McMahan et al. 2013). 0^p is 0 for p > 0. With multiply_linear_by_learning_rate the stored
// linear slot is lr times that, and lr = 0 is legal. l2_shrinkage adds 2 l2_shrinkage w to the g of
// l', but not to that of a'.
struct FtrlRuleOptions {
  double learning_rate_power = -0.5;
  double initial_accumulator_value = 0.1;
  double l1 = 0, l2 = 0, beta = 0, l2_shrinkage = 0;
  bool multiply_linear_by_learning_rate = false;
  bool allow_zero_accumulator = false;  // changes nothing: zeros are always allowed
};
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
