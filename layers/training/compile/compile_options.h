// Options of Model::compile.
#pragma once

#include <concepts>
#include <optional>
#include <string>

#include <keel/layers/losses/loss.h>
#include <keel/layers/training/compile/by_output.h>
#include <keel/layers/training/compile/metrics_argument.h>
#include <keel/optimizers/optimizer.h>

namespace keel {

// Nothing, a name ("adam") or an optimizer.
class OptimizerArgument {
 public:
  OptimizerArgument() = default;
  OptimizerArgument(const char* name) : OptimizerArgument(std::string(name)) {}  // NOLINT: implicit
  OptimizerArgument(const std::string& name)                                     // NOLINT: implicit
      : optimizer_(optimizers::get(name).shared()) {}
  template <std::derived_from<Optimizer> T>
  OptimizerArgument(const Handle<T>& optimizer)  // NOLINT: implicit
      : optimizer_(optimizer.shared()) {}

  const std::shared_ptr<Optimizer>& shared() const { return optimizer_; }

 private:
  std::shared_ptr<Optimizer> optimizer_;
};

// A loss for all outputs, or one for each by position or name; an output may have none:
//   "mse"      {"mse", {}}      {{"click", "bce"}, {"stay", losses::Huber({})}}
using LossesArgument = ByOutput<LossArgument>;
using LossWeights = ByOutput<double>;

struct CompileOptions {
  OptimizerArgument optimizer = {};  // may be unset for a model that is only evaluated
  // Not of reduction "none". May be unset for a model that adds its own losses (Layer::add_loss).
  LossesArgument loss = {};
  LossWeights loss_weights = {};  // what losses are multiplied by in their sum; 1 if unset
  MetricsArgument metrics = {};   // not weighted by sample weights
  MetricsArgument weighted_metrics = {};
  // These three have no effect. Files keep them, so that a model that came from Keras goes back
  // with the values it had: steps always run without a compiler, one at a time.
  bool run_eagerly = false;
  int64_t steps_per_execution = 1;
  std::optional<bool> jit_compile = {};
};

}  // namespace keel
