// Nadam: Adam with Nesterov's momentum (Dozat 2016).
#pragma once

#include <keel/optimizers/optimizer.h>

namespace keel {

struct NadamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;    // in [0, 1) (ValueError)
  double beta_2 = 0.999;  // in [0, 1) (ValueError)
  double epsilon = 1e-7;  // >= 0 (ValueError)
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
  }
};

// The formula is NadamRule's (framework/kernels/update_rules/dense_update_rules.h). Slots
// "momentum", "velocity" as Adam's; the scalar "u_product" among shared_slots().
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
