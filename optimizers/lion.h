// The Lion optimizer (Chen et al. 2023).
#pragma once

#include <keel/optimizers/optimizer.h>

namespace keel {

// Options of Lion.
struct LionOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;   // must be in (0, 1]
  double beta_2 = 0.99;  // must be in [0, 1]
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
  }
};

// Updates a weight w with gradient g as follows; the slot "momentum" holds m:
//   w -= lr sign(beta_1 m + (1 - beta_1) g)
//   m = beta_2 m + (1 - beta_2) g
//
// The constructor throws ValueError if an option is out of range.
class LionOptimizer final : public Optimizer {
 public:
  static constexpr char kClassName[] = "Lion";
  using Options = LionOptions;
  explicit LionOptimizer(Options options);
  Config get_config() const override { return config_of(options_); }
  const Options& options() const { return options_; }

 private:
  const Options options_;
};

namespace optimizers {
using Lion = Handle<LionOptimizer>;
}

}  // namespace keel
