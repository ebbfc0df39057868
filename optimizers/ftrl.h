// The FTRL-Proximal optimizer: follow the regularized leader (McMahan et al. 2013).
#pragma once

#include <keel/optimizers/optimizer.h>

namespace keel {

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
    field("learning_rate_power", self.learning_rate_power);
    field("initial_accumulator_value", self.initial_accumulator_value);
    field("l1_regularization_strength", self.l1_regularization_strength);
    field("l2_regularization_strength", self.l2_regularization_strength);
    field("l2_shrinkage_regularization_strength", self.l2_shrinkage_regularization_strength);
    field("beta", self.beta);
  }
};

// Applies the formula of FtrlRule (framework/kernels/update_rules/update_rule.h), where l1, l2 and
// l2_shrinkage stand for the options with these prefixes. The slots are named "accumulator" and
// "linear". The new weight is computed from the updated slots alone, so a weight whose gradient is
// 0 in its first step becomes 0.
//
// The constructor throws ValueError if an option is out of range.
class FtrlOptimizer final : public Optimizer {
 public:
  static constexpr char kClassName[] = "Ftrl";
  using Options = FtrlOptions;
  explicit FtrlOptimizer(Options options);
  Config get_config() const override { return config_of(options_); }
  const Options& options() const { return options_; }

 private:
  const Options options_;
};

namespace optimizers {
using Ftrl = Handle<FtrlOptimizer>;
}

}  // namespace keel
