// Trainer: the state that compile() creates, and the steps of fit and evaluate.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <keel/distribute/strategy.h>
#include <keel/layers/training/compile/internal/compiled_loss.h>
#include <keel/layers/training/compile/internal/compiled_metrics.h>
#include <keel/layers/training/model.h>

namespace keel {

// The position of a step, for error messages: "Model.fit: epoch 1, step 3". Printed numbers count
// from 1.
struct StepPlace {
  const char* caller = "Model";
  std::optional<int64_t> epoch = {};
  int64_t step = 0;
};
std::ostream& operator<<(std::ostream& out, const StepPlace& place);

// Runs training and test steps and accumulates losses and metrics.
class Trainer {
 public:
  using Batch = distribute::PerReplica<Tensors>;

  // Uses the current strategy. Throws ValueError for a loss with reduction "none".
  explicit Trainer(CompileOptions options);

  // Throws RuntimeError if the strategy used by compile() has been destroyed.
  distribute::Strategy& strategy() const;
  const std::shared_ptr<Optimizer>& optimizer() const { return options_.optimizer.shared(); }
  // Returns the options as a config (compile_config.h).
  Config config() const;
  const CompiledMetrics& metrics() const { return metrics_; }

  // Creates the model's weights if it is not built.
  void build(Model& model, const Batch& batch) const;

  // Runs one step on one global batch: Model::train_step or test_step in every replica. The loss is
  // the loss over the global batch even if replicas have different numbers of rows, or none.
  //
  // Guarantees after an error:
  // - If labels or weights are invalid, nothing has changed. All processes throw together.
  // - If the loss is NaN or a metric rejects the predictions, the trained weights are unchanged,
  //   but moving averages have been updated from the batch.
  //
  // Throws the ValueErrors of Model::fit, and RuntimeError if train_step has no optimizer.
  //
  // `next`, if not null, is the batch of the following step; it is passed to Model::prefetch.
  void train_step(Model& model, const Batch& batch, const StepPlace& place,
                  const Batch* next = nullptr);
  void test_step(Model& model, const Batch& batch, const StepPlace& place);
  // If true, a step whose loss is NaN does not throw; it leaves the trained weights and the metrics
  // unchanged.
  void set_tolerates_nan(bool tolerates) { tolerates_nan_ = tolerates; }

  // Called in a replica; implement the members of Model with the corresponding names.
  Logs train_replica(Model& model, const Tensors& element);
  Logs test_replica(Model& model, const Tensors& element);
  Tensor loss_of(const Model& model, const StepData& data, const Tensors& outputs);
  void update_metrics(const Model& model, const StepData& data, const Tensors& outputs);

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
    double sum = 0;  // of step values multiplied by rows
    int64_t rows = 0;
  };
  GlobalBatch global_batch() const;
  void resolve(const Model& model, const Tensors& outputs);
  // Runs `step` in every replica between the common checks and the accumulation of its results.
  template <class Fn>
  void run(Model& model, const Batch& batch, const StepPlace& place, bool is_test, const Fn& step);
  // Returns the factor of activity losses that makes each row of the global batch count equally.
  double activity_loss_scale(const Tensors& element) const;
  void add_up(const Model& model, const distribute::PerReplica<Logs>& returned);
  std::vector<MetricHandle> metrics_of_batches(const Model& model) const;
  Tensor sums_over_replicas(const Model& model, std::vector<Tensor> values);
  void prefetch(Model& model, const Tensors& element) const;
  // Returns true if the loss is NaN in this replica or, if NaN is tolerated, in any replica.
  bool is_nan_anywhere(double loss) const;

  const CompileOptions options_;
  distribute::Strategy& strategy_;
  const std::weak_ptr<const void> strategy_lifetime_;
  CompiledLoss loss_;
  CompiledMetrics metrics_;
  std::mutex resolve_mutex_;  // guards output_names_ and resolve() of loss_ and metrics_
  std::vector<std::string> output_names_;
  bool tolerates_nan_ = false;

  // State of the current step.
  StepPlace place_;
  int64_t step_rows_ = 0;          // rows of the global batch; 0 outside of steps
  std::vector<Logs> step_losses_;  // losses by output, one entry per local replica
  std::map<std::string, Mean> means_;

  // With several processes: the states of the metrics shown in batch logs, by local replica and,
  // after a step, summed over all replicas. They are exchanged together with the losses, so that a
  // step needs one exchange only.
  std::vector<std::vector<Tensor>> step_sums_;
  std::map<const Metric*, Tensor> batch_sums_;
};

// Creates the model's weights, if it is not built, for inputs like `x` with any batch size.
void build_for(Model& model, distribute::Strategy& strategy, const Tensors& x);

}  // namespace keel
