// The LAMB optimizer: Adam with step sizes proportional to the norm of each variable
// (You et al. 2020).
#pragma once

#include <keel/optimizers/optimizer.h>

namespace keel {

// Options of Lamb.
struct LambOptions {
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

// Updates a weight w in step t, counted from 1, as follows; m and v are computed as in
// AdamOptimizer:
//   u = m / (1 - beta_1^t) / (sqrt(v / (1 - beta_2^t)) + epsilon)
//   w -= lr u |w| / |u|
// The norms are taken over the whole variable; the quotient |w| / |u| is 1 if one of them is 0. The
// slots are named "momentum" (m) and "velocity" (v).
//
// The constructor throws ValueError if an option is out of range.
class LambOptimizer final : public Optimizer {
 public:
  static constexpr char kClassName[] = "Lamb";
  using Options = LambOptions;
  explicit LambOptimizer(Options options);
  Config get_config() const override { return config_of(options_); }
  const Options& options() const { return options_; }

 private:
  const Options options_;
};

namespace optimizers {
using Lamb = Handle<LambOptimizer>;
}

}  // namespace keel
