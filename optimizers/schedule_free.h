// ScheduleFreeAdamW: Adam that averages its iterates instead of decaying the learning rate.
#pragma once

#include <keel/optimizers/rule_optimizer.h>

namespace keel {

// Options of ScheduleFreeAdamW.
struct ScheduleFreeAdamWOptions {
  LearningRate learning_rate = 0.0025;
  double beta_1 = 0.9;       // must be in (0, 1)
  double beta_2 = 0.999;     // must be in [0, 1)
  double epsilon = 1e-8;     // must be >= 0
  int64_t warmup_steps = 0;  // must be >= 0; steps until lr has its full size
  // Common options; see OptimizerOptions.
  std::optional<double> weight_decay = {}, clipnorm = {}, clipvalue = {}, global_clipnorm = {};
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = {};
  std::optional<double> loss_scale_factor = {};
  std::optional<int64_t> gradient_accumulation_steps = {};
  LazyRows lazy_rows = LazyRows::kOff;
  std::string name = {};

  static constexpr void fields(auto& self, auto&& field) {
    optimizer_fields(self, field);
    field("beta_1", self.beta_1);
    field("beta_2", self.beta_2);
    field("epsilon", self.epsilon);
    field("warmup_steps", self.warmup_steps);
  }
  void check(const char* caller) const;            // throws ValueError for an option out of range
  std::shared_ptr<const UpdateRule> rule() const;  // returns the arithmetic of the update
};
// Schedule-free AdamW (Defazio et al. 2024). With t the number of the step, counted from 1, and z
// the slot "momentum", which starts with the weight w:
//   x = (w - (1 - beta_1) z) / beta_1
//   v = beta_2 v + (1 - beta_2) g^2
//   z -= lr min(1, t / warmup_steps) g / (sqrt(v / (1 - beta_2^t)) + epsilon)
//   x = (1 - 1/t) x + z / t
//   w = (1 - beta_1) z + beta_1 x
// Training sees w; x is the average to evaluate with. The slots are named "momentum" (z) and
// "velocity" (v).
class ScheduleFreeAdamWOptimizer final : public Optimizer {
 public:
  static constexpr const char* kClassName = "ScheduleFreeAdamW";  // the name in configs and files
  using Options = ScheduleFreeAdamWOptions;                       // the options of the constructor

  // Throws ValueError if an option is out of range.
  explicit ScheduleFreeAdamWOptimizer(Options options);
  Config get_config() const override { return config_of(options_); }

  // Assigns x to the variables, for evaluation and export. Variables without slots are unchanged.
  // Do not train before swap_to_train(). Throws RuntimeError in replicas, and if the variables hold
  // x already.
  void swap_to_eval(const std::vector<Variable>& variables);
  // Assigns w to the variables again. Throws RuntimeError in replicas, and if they hold w already.
  void swap_to_train(const std::vector<Variable>& variables);

 private:
  void swap(const char* caller, const std::vector<Variable>& variables, bool to_eval);

  const Options options_;
  bool holds_average_ = false;  // true between swap_to_eval() and swap_to_train()
};

namespace optimizers {
// A handle to the optimizer, under Keras's name.
using ScheduleFreeAdamW = Handle<ScheduleFreeAdamWOptimizer>;
}  // namespace optimizers

}  // namespace keel
