// Stochastic gradient descent, and Lion, which steps by the sign of a momentum.
//
// In the formulas w is a weight, g its gradient and lr the learning rate. Constructors throw
// ValueError if an option is out of range.
#pragma once

#include <keel/optimizers/rule_optimizer.h>

namespace keel {

// Options of SGD.
struct SGDOptions {
  LearningRate learning_rate = 0.01;
  double momentum = 0.0;  // must be in [0, 1]
  bool nesterov = false;  // use Nesterov momentum
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
    field("momentum", self.momentum);
    field("nesterov", self.nesterov);
  }
  void check(const char* caller) const;            // throws ValueError for an option out of range
  std::shared_ptr<const UpdateRule> rule() const;  // returns the arithmetic of the update
};
// Stochastic gradient descent: w -= lr g. With momentum, v = momentum v - lr g and then w += v, or
// with Nesterov momentum w += momentum v - lr g. The slot "momentum" holds v; it does not exist if
// momentum is 0.
using SGDOptimizer = RuleOptimizer<"SGD", SGDOptions>;

// Options of Lion.
struct LionOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;   // must be in (0, 1]
  double beta_2 = 0.99;  // must be in [0, 1]
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
    field("beta_1", self.beta_1);
    field("beta_2", self.beta_2);
  }
  void check(const char* caller) const;            // throws ValueError for an option out of range
  std::shared_ptr<const UpdateRule> rule() const;  // returns the arithmetic of the update
};
// Lion (Chen et al. 2023). The slot "momentum" holds m:
//   w -= lr sign(beta_1 m + (1 - beta_1) g)
//   m = beta_2 m + (1 - beta_2) g
using LionOptimizer = RuleOptimizer<"Lion", LionOptions>;

namespace optimizers {
// Handles to the optimizers, under Keras's names.
using SGD = Handle<SGDOptimizer>;
using Lion = Handle<LionOptimizer>;
}  // namespace optimizers

}  // namespace keel
