// Trainer: what compile() sets up, and the steps that fit and evaluate are made of.
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

// Where a step stands, for errors: "Model.fit: epoch 1, step 3".
struct StepPlace {
  const char* caller = "Model";
  std::optional<int64_t> epoch = {};
  int64_t step = 0;
};
std::ostream& operator<<(std::ostream& out, const StepPlace& place);

class Trainer {
 public:
  using Batch = distribute::PerReplica<Tensors>;

  // Takes the strategy of now. ValueError for a loss of reduction "none".
  explicit Trainer(CompileOptions options);

  // RuntimeError if the strategy that the model was compiled under is no more.
  distribute::Strategy& strategy() const;
  const std::shared_ptr<Optimizer>& optimizer() const { return options_.optimizer.shared(); }
  // compile_config.h
  Config config() const;
  const CompiledMetrics& metrics() const { return metrics_; }

  // Makes the weights, if there are none.
  void build(Model& model, const Batch& batch) const;

  // One step on one global batch: Model::train_step, or test_step, in every replica. The loss is
  // over the global batch, also where replicas have different numbers of rows, or none. Nothing has
  // changed when labels or weights are refused, which all processes of a job do together; the
  // trained weights have not when the loss is NaN or a metric refuses the predictions (moving
  // averages have seen the batch). ValueError as Model::fit says; RuntimeError for a train_step
  // without an optimizer.
  // `next`, if given, is the batch of the step after this one, of which Model::prefetch is told.
  void train_step(Model& model, const Batch& batch, const StepPlace& place,
                  const Batch* next = nullptr);
  void test_step(Model& model, const Batch& batch, const StepPlace& place);
  // True: a step whose loss is NaN is no error; it leaves the trained weights and the metrics
  // alone.
  void set_bears_nan(bool bears) { tolerates_nan_ = bears; }

  // In a replica: what Model's members of these names do.
  Logs train_replica(Model& model, const Tensors& element);
  Logs test_replica(Model& model, const Tensors& element);
  Tensor loss_of(const Model& model, const StepData& data, const Tensors& outputs);
  void update_metrics(const Model& model, const StepData& data, const Tensors& outputs);

  // Losses, means over rows, and metrics since the last reset: all of them at the end of an epoch,
  // after a batch those whose results are not costly.
  enum class LogsOf { kBatch, kEpoch };
  Logs logs(const Model& model, LogsOf of = LogsOf::kEpoch) const;
  void reset(const Model& model);
  // What has been gathered since then, each replica's own, by name. Collective.
  using State = std::map<std::string, Tensor>;
  State state(const Model& model) const;
  // ValueError for a state of other metrics or of another number of replicas.
  void set_state(const Model& model, const State& state);

 private:
  struct Mean {
    double sum = 0;  // of step values times rows
    int64_t rows = 0;
  };
  GlobalBatch global_batch() const;
  void resolve(const Model& model, const Tensors& outputs);
  template <class Fn>
  void run(Model& model, const Batch& batch, const StepPlace& place, bool is_test, const Fn& step);
  double activity_loss_scale(const Tensors& element) const;
  void add_up(const Model& model, const distribute::PerReplica<Logs>& returned);
  std::vector<MetricHandle> metrics_of_batches(const Model& model) const;
  Tensor sums_over_replicas(const Model& model, std::vector<Tensor> values);
  void prefetch(Model& model, const Tensors& element) const;
  bool is_nan_anywhere(double loss) const;

  const CompileOptions options_;
  distribute::Strategy& strategy_;
  const std::weak_ptr<const void> strategy_lifetime_;
  CompiledLoss loss_;
  CompiledMetrics metrics_;
  std::mutex resolve_mutex_;  // guards output_names_ and the resolving of loss_ and metrics_
  std::vector<std::string> output_names_;
  bool tolerates_nan_ = false;

  // Of the step that runs.
  StepPlace place_;
  int64_t step_rows_ = 0;          // of the global batch; 0 outside of steps
  std::vector<Logs> step_losses_;  // of outputs, by local replica
  std::map<std::string, Mean> means_;

  // Of several processes: the sums of the metrics that logs of batches show, by local replica and,
  // after a step, over all replicas. They come with the losses, in one exchange.
  std::vector<std::vector<Tensor>> step_sums_;
  std::map<const Metric*, Tensor> batch_sums_;
};

// Makes the model's weights, if there are none, for inputs like `x` with a batch dimension of any
// size.
void build_for(Model& model, distribute::Strategy& strategy, const Tensors& x);

}  // namespace keel
