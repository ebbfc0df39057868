// Stochastic gradient descent, optionally with momentum or Nesterov momentum.
#pragma once

#include <keel/optimizers/optimizer.h>

namespace keel {

// Options of SGD.
struct SGDOptions {
  LearningRate learning_rate = 0.01;
  double momentum = 0.0;  // must be in [0, 1]
  bool nesterov = false;
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
    field("momentum", self.momentum);
    field("nesterov", self.nesterov);
  }
};

// Updates a weight w with gradient g by w -= lr g. With momentum, v = momentum v - lr g and then
// w += v, or with Nesterov momentum w += momentum v - lr g. The slot "momentum" holds v; it does
// not exist if momentum is 0.
//
// The constructor throws ValueError if an option is out of range.
class SGDOptimizer final : public Optimizer {
 public:
  static constexpr char kClassName[] = "SGD";
  using Options = SGDOptions;
  explicit SGDOptimizer(Options options);
  Config get_config() const override { return config_of(options_); }
  const Options& options() const { return options_; }

 private:
  const Options options_;
};

namespace optimizers {
using SGD = Handle<SGDOptimizer>;
}

}  // namespace keel
