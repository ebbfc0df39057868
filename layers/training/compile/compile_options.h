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

// The optimizer argument of compile(): empty, a registered name ("adam") or an optimizer.
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

// A loss for all outputs, or one loss per output by position or by name. An empty loss ({}) leaves
// an output without a loss:
//   "mse"      {"mse", {}}      {{"click", "bce"}, {"stay", losses::Huber({})}}
using LossesArgument = ByOutput<LossArgument>;
// Factors of the losses in their weighted sum.
using LossWeights = ByOutput<double>;

// Options of Model::compile (keras.Model.compile).
struct CompileOptions {
  OptimizerArgument optimizer = {};  // may be empty for a model that is only evaluated
  // Must not have reduction "none". May be empty for a model that adds its own losses
  // (Layer::add_loss).
  LossesArgument loss = {};
  LossWeights loss_weights = {};          // factor of each loss in the sum; default 1
  MetricsArgument metrics = {};           // computed without sample weights
  MetricsArgument weighted_metrics = {};  // computed with sample weights
  // The next three options have no effect: each step runs on its own and is never compiled. They
  // are stored in model files so that a model loaded from a Keras file is saved with the same
  // values.
  bool run_eagerly = false;
  int64_t steps_per_execution = 1;
  std::optional<bool> jit_compile = {};
};

}  // namespace keel
