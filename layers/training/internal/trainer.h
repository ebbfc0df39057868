// Trainer: what compile() creates: the optimizer, the losses, the metrics and their running values.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <keel/distribute/strategy.h>
#include <keel/layers/training/compile/internal/compiled_loss.h>
#include <keel/layers/training/compile/internal/compiled_metrics.h>
#include <keel/layers/training/model.h>

namespace keel {

class TrainStep;

inline constexpr char kLoss[] = "loss";  // the name of the loss in logs

// Belongs to one compile() of one model.
class Trainer {
 public:
  using Batch = distribute::PerReplica<Tensors>;

  // Uses the current strategy. With `scale_loss`, wraps the optimizer in a LossScaleOptimizer
  // unless it is one; config() has the original. Throws ValueError for a loss with reduction
  // "none".
  explicit Trainer(CompileOptions options, bool scale_loss = false);

  // Throws RuntimeError if the strategy used by compile() has been destroyed.
  distribute::Strategy& strategy() const;
  const std::shared_ptr<Optimizer>& optimizer() const { return optimizer_; }
  // Returns the options as a config (compile_config.h).
  Config config() const;
  const CompiledLoss& loss() const { return loss_; }
  const CompiledMetrics& metrics() const { return metrics_; }

  // Creates the model's weights if it is not built. `caller` prefixes errors.
  void build(Model& model, const Batch& batch, const char* caller) const;
  // Matches losses and metrics with the outputs at the first call. Returns the names of the
  // outputs. Thread-safe.
  const std::vector<std::string>& resolve(const Model& model, const Tensors& outputs);
  // Returns the metrics that logs of batches show and whose state exists.
  std::vector<MetricHandle> batch_metrics(const Model& model) const;

  // Returns the step that runs, or null.
  TrainStep* step() const { return step_; }
  // Called by the step when it begins and, with null, when it ends.
  void set_step(TrainStep* step);

  // The values of one step, summed over all replicas.
  struct StepSums {
    int64_t rows = 0;                           // rows of the global batch
    std::map<std::string, double> losses = {};  // by name in logs
    // With several processes: the states of batch_metrics(). They are exchanged together with the
    // losses, so that a step needs one exchange only.
    std::map<const Metric*, Tensor> metric_states = {};
  };
  // Adds the losses of a step to the running means.
  void add(StepSums sums);

  // Returns the accumulated losses, as means over rows, and the metrics since the last reset.
  // kEpoch includes all metrics; kBatch omits metrics whose results are costly.
  enum class LogsOf { kBatch, kEpoch };
  Logs logs(const Model& model, LogsOf of = LogsOf::kEpoch) const;
  // Resets losses and metrics.
  void reset(const Model& model);
  // Returns the values accumulated since the last reset, one set per replica, by name. Collective.
  using State = std::map<std::string, Tensor>;
  State state(const Model& model) const;
  // Restores such a state. Throws ValueError for the state of a model with other metrics or another
  // number of replicas.
  void set_state(const Model& model, const State& state);

 private:
  struct Mean {
    double sum = 0;  // sum of step values multiplied by rows
    int64_t rows = 0;
  };

  const CompileOptions options_;
  const std::shared_ptr<Optimizer> optimizer_;
  distribute::Strategy& strategy_;
  const std::weak_ptr<const void> strategy_lifetime_;
  CompiledLoss loss_;
  CompiledMetrics metrics_;
  std::mutex resolve_mutex_;  // guards output_names_ and resolve() of loss_ and metrics_
  std::vector<std::string> output_names_;
  TrainStep* step_ = nullptr;

  std::map<std::string, Mean> means_;
  std::map<const Metric*, Tensor> metric_states_;  // states of the last step; see StepSums
};

// Creates the model's weights, if it is not built, for inputs like `x` with any batch size.
void build_for(Model& model, distribute::Strategy& strategy, const Tensors& x);

}  // namespace keel
