// The Adamax optimizer: Adam based on the infinity norm (Kingma and Ba 2015, section 7).
#pragma once

#include <keel/optimizers/optimizer.h>

namespace keel {

// Options of Adamax.
struct AdamaxOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;    // must be in [0, 1)
  double beta_2 = 0.999;  // must be in [0, 1)
  double epsilon = 1e-7;  // must be >= 0
  // Common options; see OptimizerOptions.
  std::optional<double> weight_decay = {};
  std::optional<double> clipnorm = {}, clipvalue = {}, global_clipnorm = {};
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = {};
  std::optional<double> loss_scale_factor = {};
  std::optional<int64_t> gradient_accumulation_steps = {};
  LazyRows lazy_rows = LazyRows::kOff;
  std::string name = {};

  static void fields(auto& self, auto&& field) {
    optimizer_fields(self, field);
    field("beta_1", self.beta_1);
    field("beta_2", self.beta_2);
    field("epsilon", self.epsilon);
  }
};

// Updates a weight w with gradient g in step t, counted from 1, as follows:
//   m = beta_1 m + (1 - beta_1) g
//   u = max(beta_2 u, |g|)
//   w -= lr m / ((1 - beta_1^t) (u + epsilon))
// The slots are named "momentum" (m) and "norm" (u).
//
// The constructor throws ValueError if an option is out of range.
class AdamaxOptimizer final : public Optimizer {
 public:
  static constexpr char kClassName[] = "Adamax";
  using Options = AdamaxOptions;
  explicit AdamaxOptimizer(Options options);
  Config get_config() const override { return config_of(options_); }
  const Options& options() const { return options_; }

 private:
  const Options options_;
};

namespace optimizers {
using Adamax = Handle<AdamaxOptimizer>;
}

}  // namespace keel
