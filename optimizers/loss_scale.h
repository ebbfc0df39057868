// LossScaleOptimizer: scales the loss so that float16 gradients do not underflow.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/optimizers/optimizer.h>

namespace keel {

// Options of LossScaleOptimizer.
struct LossScaleOptimizerOptions {
  std::optional<OptimizerHandle> inner_optimizer = {};  // required
  double initial_scale = 32768;                         // must be positive
  int64_t dynamic_growth_steps = 2000;                  // must be positive
  std::string name = {};                                // if empty, "loss_scale_optimizer"
};

// Scales the loss of another optimizer, whose state it shares (keras.optimizers.LossScaleOptimizer;
// Micikevicius et al. 2018). scale_loss() multiplies by the current scale, and apply_gradients()
// divides the gradients by it before it passes them to the inner optimizer:
//   - If a gradient is not finite, nothing is updated, the step is not counted, and the scale is
//     halved.
//   - After dynamic_growth_steps steps in a row with finite gradients, the scale is doubled.
// In replicas, gradients of one replica that are not finite make all replicas skip the step.
//
// Model::compile wraps the optimizer of a model with the dtype policy "mixed_float16" in this class
// (CompileOptions::auto_scale_loss).
//
// Everything else, such as the learning rate, the number of iterations and the slots, is that of
// the inner optimizer. Files hold the variables "iteration" and "learning_rate", which stay 0,
// "step_counter" and "dynamic_scale", and then those of the inner optimizer.
//
// Gradients of virtual variables do not pass through apply_gradients(), so that it throws
// NotImplementedError for them; pass auto_scale_loss = false to compile().
class LossScaleOptimizer final : public Optimizer {
 public:
  static constexpr const char* kClassName = "LossScaleOptimizer";  // in configs and files
  using Options = LossScaleOptimizerOptions;                       // the options of the constructor

  // Throws ValueError if an option is out of range, or if the inner optimizer is missing or a
  // LossScaleOptimizer.
  explicit LossScaleOptimizer(const Options& options);

  void apply_gradients(const std::vector<Gradient>& gradients,
                       const std::vector<Variable>& variables) override;
  Tensor scale_loss(const Tensor& loss) const override;
  void check_variables(const std::vector<Variable>& variables) const override;
  const Optimizer& unwrapped() const override { return *inner_; }
  const std::vector<OptimizerHandle>& optimizers() const override { return inner_->optimizers(); }
  const Optimizer& optimizer_of(const Variable& variable) const override;
  std::vector<Variable> wrapper_variables() const override;
  Config get_config() const override;
  // Reads what get_config() returns. The settings that Keras 3.0 to 3.12 and Keras 2 wrote besides
  // are accepted with their defaults. Throws ValueError for others, which belong to the inner
  // optimizer.
  static std::shared_ptr<LossScaleOptimizer> from_config(const Config& config);

  const OptimizerHandle& inner_optimizer() const { return inner_; }  // the wrapped optimizer
  double dynamic_scale() const;                                      // the scale of the next step

 private:
  // Counts a step and changes the scale.
  void update_scale(bool finite) const;

  const Options options_;
  const OptimizerHandle inner_;
  Variable iteration_, learning_rate_, step_counter_, dynamic_scale_;
};

namespace optimizers {
// A handle to the optimizer, under Keras's name.
using LossScaleOptimizer = Handle<keel::LossScaleOptimizer>;
}  // namespace optimizers

}  // namespace keel
