// The Nadam optimizer: Adam with Nesterov momentum (Dozat 2016).
#pragma once

#include <keel/optimizers/optimizer.h>

namespace keel {

// Options of Nadam.
struct NadamOptions {
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

// Applies the formula of NadamRule (framework/kernels/update_rules/dense_update_rules.h). The slots
// "momentum" and "velocity" are those of AdamOptimizer; shared_slots() holds the scalar
// "u_product".
//
// The constructor throws ValueError if an option is out of range.
class NadamOptimizer final : public Optimizer {
 public:
  static constexpr char kClassName[] = "Nadam";
  using Options = NadamOptions;
  explicit NadamOptimizer(Options options);
  Config get_config() const override { return config_of(options_); }
  const Options& options() const { return options_; }

 private:
  const Options options_;
};

namespace optimizers {
using Nadam = Handle<NadamOptimizer>;
}

}  // namespace keel
