// The Adagrad optimizer (Duchi et al. 2011).
#pragma once

#include <keel/optimizers/optimizer.h>

namespace keel {

// Options of Adagrad.
struct AdagradOptions {
  LearningRate learning_rate = 0.001;
  double initial_accumulator_value = 0.1;  // must be >= 0
  double epsilon = 1e-7;                   // must be >= 0
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
    field("initial_accumulator_value", self.initial_accumulator_value);
    field("epsilon", self.epsilon);
  }
};

// Updates a weight w with gradient g as follows; the slot "accumulator" holds a:
//   a += g^2
//   w -= lr g / sqrt(a + epsilon)
//
// The constructor throws ValueError if an option is out of range.
class AdagradOptimizer final : public Optimizer {
 public:
  static constexpr char kClassName[] = "Adagrad";
  using Options = AdagradOptions;
  explicit AdagradOptimizer(Options options);
  Config get_config() const override { return config_of(options_); }
  const Options& options() const { return options_; }

 private:
  const Options options_;
};

namespace optimizers {
using Adagrad = Handle<AdagradOptimizer>;
}

}  // namespace keel
