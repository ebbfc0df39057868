// Adam (Kingma and Ba 2015), with bias correction.
#pragma once

#include <keel/optimizers/optimizer.h>

namespace keel {

struct AdamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;    // in [0, 1) (ValueError)
  double beta_2 = 0.999;  // in [0, 1) (ValueError)
  double epsilon = 1e-7;  // >= 0 (ValueError)
  bool amsgrad = false;
  // As in OptimizerOptions.
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

// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; w -= alpha m / (sqrt(v) + epsilon) with
// alpha = lr sqrt(1 - b2^t) / (1 - b1^t) in step t, from 1; amsgrad takes the root of the largest v
// so far. Slots "momentum" (m), "velocity" (v), with amsgrad "velocity_hat".
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
