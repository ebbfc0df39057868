// Optimizers that divide by the root of accumulated squared gradients: Adagrad, Adadelta, RMSprop
// and Ftrl.
//
// In the formulas w is a weight, g its gradient and lr the learning rate. Constructors throw
// ValueError if an option is out of range.
#pragma once

#include <keel/optimizers/rule_optimizer.h>

namespace keel {

// Options of Adagrad.
struct AdagradOptions {
  LearningRate learning_rate = 0.001;
  double initial_accumulator_value = 0.1;  // must be >= 0
  double epsilon = 1e-7;                   // must be >= 0
  // Common options; see OptimizerOptions.
  std::optional<double> weight_decay = {}, clipnorm = {}, clipvalue = {}, global_clipnorm = {};
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = {};
  std::optional<double> loss_scale_factor = {};
  std::optional<int64_t> gradient_accumulation_steps = {};
  LazyRows lazy_rows = LazyRows::kOff;
  std::string name = {};

  static constexpr void fields(auto& self, auto&& field) {
    optimizer_fields(self, field);
    field("initial_accumulator_value", self.initial_accumulator_value);
    field("epsilon", self.epsilon);
  }
  void check(const char* caller) const;            // throws ValueError for an option out of range
  std::shared_ptr<const UpdateRule> rule() const;  // returns the arithmetic of the update
};
// Adagrad (Duchi et al. 2011). The slot "accumulator" holds a:
//   a += g^2
//   w -= lr g / sqrt(a + epsilon)
using AdagradOptimizer = RuleOptimizer<"Adagrad", AdagradOptions>;

// Options of Adadelta.
struct AdadeltaOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.95;      // must be in [0, 1]
  double epsilon = 1e-7;  // must be >= 0
  // Common options; see OptimizerOptions.
  std::optional<double> weight_decay = {}, clipnorm = {}, clipvalue = {}, global_clipnorm = {};
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = {};
  std::optional<double> loss_scale_factor = {};
  std::optional<int64_t> gradient_accumulation_steps = {};
  LazyRows lazy_rows = LazyRows::kOff;
  std::string name = {};

  static constexpr void fields(auto& self, auto&& field) {
    optimizer_fields(self, field);
    field("rho", self.rho);
    field("epsilon", self.epsilon);
  }
  void check(const char* caller) const;            // throws ValueError for an option out of range
  std::shared_ptr<const UpdateRule> rule() const;  // returns the arithmetic of the update
};
// Adadelta (Zeiler 2012):
//   a = rho a + (1 - rho) g^2
//   u = g sqrt(d + epsilon) / sqrt(a + epsilon)
//   d = rho d + (1 - rho) u^2
//   w -= lr u
// The paper uses lr = 1. The slots are named "accumulated_grad" (a) and "accumulated_delta_var"
// (d).
using AdadeltaOptimizer = RuleOptimizer<"Adadelta", AdadeltaOptions>;

// Options of RMSprop.
struct RMSpropOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.9;       // must be in [0, 1]
  double momentum = 0.0;  // must be in [0, 1]
  double epsilon = 1e-7;  // must be >= 0
  bool centered = false;  // divide by the root of the variance
  // Common options; see OptimizerOptions.
  std::optional<double> weight_decay = {}, clipnorm = {}, clipvalue = {}, global_clipnorm = {};
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = {};
  std::optional<double> loss_scale_factor = {};
  std::optional<int64_t> gradient_accumulation_steps = {};
  LazyRows lazy_rows = LazyRows::kOff;
  std::string name = {};

  static constexpr void fields(auto& self, auto&& field) {
    optimizer_fields(self, field);
    field("rho", self.rho);
    field("momentum", self.momentum);
    field("epsilon", self.epsilon);
    field("centered", self.centered);
  }
  void check(const char* caller) const;            // throws ValueError for an option out of range
  std::shared_ptr<const UpdateRule> rule() const;  // returns the arithmetic of the update
};
// RMSprop (Tieleman and Hinton 2012):
//   v = rho v + (1 - rho) g^2
//   w -= lr g / sqrt(v + epsilon)
// With `centered`, the variance v - a^2 replaces v under the root, where a = rho a + (1 - rho) g.
// With momentum, m = momentum m + lr g / sqrt(v + epsilon) and w -= m. The slots are named
// "velocity" (v), with momentum "momentum" (m), and with `centered` "average_gradient" (a).
using RMSpropOptimizer = RuleOptimizer<"RMSprop", RMSpropOptions>;

// Options of Ftrl.
struct FtrlOptions {
  LearningRate learning_rate = 0.001;
  double learning_rate_power = -0.5;                // must be <= 0
  double initial_accumulator_value = 0.1;           // must be >= 0
  double l1_regularization_strength = 0;            // must be >= 0
  double l2_regularization_strength = 0;            // must be >= 0
  double l2_shrinkage_regularization_strength = 0;  // must be >= 0
  double beta = 0;                                  // must be >= 0
  // Common options; see OptimizerOptions.
  std::optional<double> weight_decay = {}, clipnorm = {}, clipvalue = {}, global_clipnorm = {};
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = {};
  std::optional<double> loss_scale_factor = {};
  std::optional<int64_t> gradient_accumulation_steps = {};
  LazyRows lazy_rows = LazyRows::kOff;
  std::string name = {};

  static constexpr void fields(auto& self, auto&& field) {
    optimizer_fields(self, field);
    field("learning_rate_power", self.learning_rate_power);
    field("initial_accumulator_value", self.initial_accumulator_value);
    field("l1_regularization_strength", self.l1_regularization_strength);
    field("l2_regularization_strength", self.l2_regularization_strength);
    field("l2_shrinkage_regularization_strength", self.l2_shrinkage_regularization_strength);
    field("beta", self.beta);
  }
  void check(const char* caller) const;            // throws ValueError for an option out of range
  std::shared_ptr<const UpdateRule> rule() const;  // returns the arithmetic of the update
};
// FTRL-Proximal: follow the regularized leader (McMahan et al. 2013). With p =
// -learning_rate_power, and l1, l2 and shrinkage for the options with these prefixes:
//   a' = a + g^2
//   l += g + 2 shrinkage w - (a'^p - a^p) w / lr
//   w = (clamp(l, -l1, l1) - l) / ((a'^p + beta) / lr + 2 l2)
// The slots are named "accumulator" (a) and "linear" (l). The new weight is computed from the
// updated slots alone, so a weight whose gradient is 0 in its first step becomes 0.
using FtrlOptimizer = RuleOptimizer<"Ftrl", FtrlOptions>;

namespace optimizers {
// Handles to the optimizers, under Keras's names.
using Adagrad = Handle<AdagradOptimizer>;
using Adadelta = Handle<AdadeltaOptimizer>;
using RMSprop = Handle<RMSpropOptimizer>;
using Ftrl = Handle<FtrlOptimizer>;
}  // namespace optimizers

}  // namespace keel
