// The RMSprop optimizer (Tieleman and Hinton 2012).
#pragma once

#include <keel/optimizers/optimizer.h>

namespace keel {

// Options of RMSprop.
struct RMSpropOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.9;       // must be in [0, 1]
  double momentum = 0.0;  // must be in [0, 1]
  double epsilon = 1e-7;  // must be >= 0
  bool centered = false;
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
    field("momentum", self.momentum);
    field("epsilon", self.epsilon);
    field("centered", self.centered);
  }
};

// Updates a weight w with gradient g as follows:
//   v = rho v + (1 - rho) g^2
//   w -= lr g / sqrt(v + epsilon)
// With `centered`, the variance v - a^2 replaces v under the root, where a = rho a + (1 - rho) g.
// With momentum, m = momentum m + lr g / sqrt(v + epsilon) and w -= m. The slots are named
// "velocity" (v), with momentum "momentum" (m), and with `centered` "average_gradient" (a).
//
// The constructor throws ValueError if an option is out of range.
class RMSpropOptimizer final : public Optimizer {
 public:
  static constexpr char kClassName[] = "RMSprop";
  using Options = RMSpropOptions;
  explicit RMSpropOptimizer(Options options);
  Config get_config() const override { return config_of(options_); }
  const Options& options() const { return options_; }

 private:
  const Options options_;
};

namespace optimizers {
using RMSprop = Handle<RMSpropOptimizer>;
}

}  // namespace keel
