// The Adadelta optimizer (Zeiler 2012).
#pragma once

#include <keel/optimizers/optimizer.h>

namespace keel {

// Options of Adadelta.
struct AdadeltaOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.95;      // must be in [0, 1]
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
    field("rho", self.rho);
    field("epsilon", self.epsilon);
  }
};

// Updates a weight w with gradient g as follows; a and d are the slots:
//   a = rho a + (1 - rho) g^2
//   u = g sqrt(d + epsilon) / sqrt(a + epsilon)
//   d = rho d + (1 - rho) u^2
//   w -= lr u
// The paper uses lr = 1. The slots are named "accumulated_grad" (a) and "accumulated_delta_var"
// (d).
//
// The constructor throws ValueError if an option is out of range.
class AdadeltaOptimizer final : public Optimizer {
 public:
  static constexpr char kClassName[] = "Adadelta";
  using Options = AdadeltaOptions;
  explicit AdadeltaOptimizer(Options options);
  Config get_config() const override { return config_of(options_); }
  const Options& options() const { return options_; }

 private:
  const Options options_;
};

namespace optimizers {
using Adadelta = Handle<AdadeltaOptimizer>;
}

}  // namespace keel
