// SGD, with momentum or Nesterov's variant of it on request.
#pragma once

#include <keel/optimizers/optimizer.h>

namespace keel {

struct SGDOptions {
  LearningRate learning_rate = 0.01;
  double momentum = 0.0;  // in [0, 1] (ValueError)
  bool nesterov = false;
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
    field("momentum", self.momentum);
    field("nesterov", self.nesterov);
  }
};

// w -= lr g; with momentum v = momentum v - lr g, w += v (nesterov: w += momentum v - lr g).
// Slot "momentum" if momentum is not 0.
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
