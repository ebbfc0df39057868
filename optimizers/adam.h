// Adam and its relatives: AdamW, Adamax, Nadam and Lamb.
//
// In the formulas w is a weight, g its gradient, lr the learning rate, and t the number of the
// step, counted from 1. Constructors throw ValueError if an option is out of range.
#pragma once

#include <keel/optimizers/rule_optimizer.h>

namespace keel {

// Options of Adam.
struct AdamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;    // must be in [0, 1)
  double beta_2 = 0.999;  // must be in [0, 1)
  double epsilon = 1e-7;  // must be >= 0
  bool amsgrad = false;   // divide by the largest v so far
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
    field("epsilon", self.epsilon);
    field("amsgrad", self.amsgrad);
  }
  void check(const char* caller) const;            // throws ValueError for an option out of range
  std::shared_ptr<const UpdateRule> rule() const;  // returns the arithmetic of the update
};
// Adam with bias correction (Kingma and Ba 2015):
//   m = beta_1 m + (1 - beta_1) g
//   v = beta_2 v + (1 - beta_2) g^2
//   alpha = lr sqrt(1 - beta_2^t) / (1 - beta_1^t)
//   w -= alpha m / (sqrt(v) + epsilon)
// With amsgrad, the square root is taken of the largest v so far. The slots are named "momentum"
// (m), "velocity" (v) and, with amsgrad, "velocity_hat".
using AdamOptimizer = RuleOptimizer<"Adam", AdamOptions>;

// Options of AdamW.
struct AdamWOptions {
  LearningRate learning_rate = 0.001;
  std::optional<double> weight_decay = 0.004;  // must be set
  double beta_1 = 0.9;                         // must be in [0, 1)
  double beta_2 = 0.999;                       // must be in [0, 1)
  double epsilon = 1e-7;                       // must be >= 0
  bool amsgrad = false;                        // as in AdamOptions
  // Common options; see OptimizerOptions.
  std::optional<double> clipnorm = {}, clipvalue = {}, global_clipnorm = {};
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
    field("epsilon", self.epsilon);
    field("amsgrad", self.amsgrad);
  }
  void check(const char* caller) const;            // throws ValueError for an option out of range
  std::shared_ptr<const UpdateRule> rule() const;  // returns the arithmetic of the update
};
// Adam with decoupled weight decay (Loshchilov and Hutter 2019): w -= lr weight_decay w, then the
// update of AdamOptimizer with its slots.
using AdamWOptimizer = RuleOptimizer<"AdamW", AdamWOptions>;

// The update rules with the options of MomentOptions.
enum class MomentRule { kAdamax, kNadam, kLamb };

namespace internal {
void check_moments(const char* caller, double beta_1, double beta_2, double epsilon);
std::shared_ptr<const UpdateRule> moment_rule(MomentRule rule, double beta_1, double beta_2,
                                              double epsilon);
}  // namespace internal

// Options of Adamax, Nadam and Lamb.
template <MomentRule kRule>
struct MomentOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;    // must be in [0, 1)
  double beta_2 = 0.999;  // must be in [0, 1)
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
    field("beta_1", self.beta_1);
    field("beta_2", self.beta_2);
    field("epsilon", self.epsilon);
  }
  // Throws ValueError for an option out of range.
  void check(const char* caller) const { internal::check_moments(caller, beta_1, beta_2, epsilon); }
  // Returns the arithmetic of the update.
  std::shared_ptr<const UpdateRule> rule() const {
    return internal::moment_rule(kRule, beta_1, beta_2, epsilon);
  }
};
using AdamaxOptions = MomentOptions<MomentRule::kAdamax>;  // options of Adamax
using NadamOptions = MomentOptions<MomentRule::kNadam>;    // options of Nadam
using LambOptions = MomentOptions<MomentRule::kLamb>;      // options of Lamb

// Adam based on the infinity norm (Kingma and Ba 2015, section 7):
//   m = beta_1 m + (1 - beta_1) g
//   u = max(beta_2 u, |g|)
//   w -= lr m / ((1 - beta_1^t) (u + epsilon))
// The slots are named "momentum" (m) and "norm" (u).
using AdamaxOptimizer = RuleOptimizer<"Adamax", AdamaxOptions>;

// Adam with Nesterov momentum (Dozat 2016). With m and v as in AdamOptimizer,
// mu_t = beta_1 (1 - 0.96^t / 2) and P_t the product mu_1 ... mu_t:
//   h = mu_{t+1} m / (1 - P_{t+1}) + (1 - mu_t) g / (1 - P_t)
//   w -= lr h / (sqrt(v / (1 - beta_2^t)) + epsilon)
// The slots are those of AdamOptimizer; shared_slots() holds the scalar "u_product" (P_t).
using NadamOptimizer = RuleOptimizer<"Nadam", NadamOptions>;

// LAMB: Adam with step sizes proportional to the norm of each variable (You et al. 2020). With m
// and v as in AdamOptimizer:
//   u = m / (1 - beta_1^t) / (sqrt(v / (1 - beta_2^t)) + epsilon)
//   w -= lr u |w| / |u|
// The norms are taken over the whole variable; the quotient |w| / |u| is 1 if one of them is 0. The
// slots are named "momentum" (m) and "velocity" (v).
using LambOptimizer = RuleOptimizer<"Lamb", LambOptions>;

namespace optimizers {
// Handles to the optimizers, under Keras's names.
using Adam = Handle<AdamOptimizer>;
using AdamW = Handle<AdamWOptimizer>;
using Adamax = Handle<AdamaxOptimizer>;
using Nadam = Handle<NadamOptimizer>;
using Lamb = Handle<LambOptimizer>;
}  // namespace optimizers

}  // namespace keel
