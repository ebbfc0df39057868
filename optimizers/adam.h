// The Adam optimizer with bias correction (Kingma and Ba 2015).
#pragma once

#include <keel/optimizers/optimizer.h>

namespace keel {

// Options of Adam.
struct AdamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;    // must be in [0, 1)
  double beta_2 = 0.999;  // must be in [0, 1)
  double epsilon = 1e-7;  // must be >= 0
  bool amsgrad = false;
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
    field("amsgrad", self.amsgrad);
  }
};

// Updates a weight w with gradient g in step t, counted from 1, as follows:
//   m = beta_1 m + (1 - beta_1) g
//   v = beta_2 v + (1 - beta_2) g^2
//   alpha = lr sqrt(1 - beta_2^t) / (1 - beta_1^t)
//   w -= alpha m / (sqrt(v) + epsilon)
// With amsgrad, the square root is taken of the largest v so far. The slots are named "momentum"
// (m), "velocity" (v) and, with amsgrad, "velocity_hat".
//
// The constructor throws ValueError if an option is out of range.
class AdamOptimizer final : public Optimizer {
 public:
  static constexpr char kClassName[] = "Adam";
  using Options = AdamOptions;
  explicit AdamOptimizer(Options options);
  Config get_config() const override { return config_of(options_); }
  const Options& options() const { return options_; }

 private:
  const Options options_;
};

namespace optimizers {
using Adam = Handle<AdamOptimizer>;
}

}  // namespace keel
