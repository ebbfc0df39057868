// The AdamW optimizer: Adam with decoupled weight decay (Loshchilov and Hutter 2019).
#pragma once

#include <keel/optimizers/optimizer.h>

namespace keel {

// Options of AdamW.
struct AdamWOptions {
  LearningRate learning_rate = 0.001;
  std::optional<double> weight_decay = 0.004;  // must be set
  double beta_1 = 0.9;                         // must be in [0, 1)
  double beta_2 = 0.999;                       // must be in [0, 1)
  double epsilon = 1e-7;                       // must be >= 0
  bool amsgrad = false;
  // Common options; see OptimizerOptions.
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

// Applies w -= lr weight_decay w and then the update of AdamOptimizer. The slots are those of
// AdamOptimizer.
//
// The constructor throws ValueError if an option is out of range.
class AdamWOptimizer final : public Optimizer {
 public:
  static constexpr char kClassName[] = "AdamW";
  using Options = AdamWOptions;
  explicit AdamWOptimizer(Options options);
  Config get_config() const override { return config_of(options_); }
  const Options& options() const { return options_; }

 private:
  const Options options_;
};

namespace optimizers {
using AdamW = Handle<AdamWOptimizer>;
}

}  // namespace keel
