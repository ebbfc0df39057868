// Trainer: what compile() sets up, and the steps that fit, evaluate and predict are made of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "distribute/strategy.h"
#include "layers/model.h"

namespace keel {

// Where a step stands, for errors: "Model.fit: epoch 1, step 3".
struct StepPlace {
  const char* who = "";
  std::optional<int64_t> epoch = {};
  int64_t step = 0;
};
std::ostream& operator<<(std::ostream& out, const StepPlace& place);

class Trainer {
 public:
  using Batch = distribute::PerReplica<Tensors>;

  // Takes the strategy of now. ValueError without a loss, or with one of reduction "none".
  explicit Trainer(CompileOptions options);

  // RuntimeError if the strategy that the model was compiled under is no more.
  distribute::Strategy& strategy() const;
  const std::shared_ptr<Optimizer>& optimizer() const { return options_.optimizer.shared(); }
  // {"optimizer", "loss", "metrics", "weighted_metrics"} as Keras writes them.
  Config config() const;

  // One step on one global batch of (x, y) or (x, y, sample_weight). The loss is over the global
  // batch, also where replicas have different numbers of rows, or none. Nothing has changed when
  // labels or weights are refused, which all processes of a job do together; the trained weights
  // have not when the loss is NaN or a metric refuses the predictions (moving averages have seen
  // the batch). ValueError as Model::fit says; RuntimeError for a train_step without an optimizer;
  // NotImplementedError for labels or outputs of several tensors.
  void train_step(Model& model, const Batch& batch, const StepPlace& place);
  void test_step(Model& model, const Batch& batch, const StepPlace& place);

  // Loss, a mean over rows, and metrics since the last reset.
  Logs logs() const;
  void reset();

 private:
  struct Example;
  struct Totals;  // of the global batch
  static Example unpack(const Tensors& element, const StepPlace& place);
  Totals check_labels(const Batch& batch, const StepPlace& place) const;
  Tensor loss_of(const Example& example, const Tensor& output, const Totals& totals,
                 const StepPlace& place) const;
  void update_metrics(const Example& example, const Tensor& output);
  void count(const distribute::PerReplica<Tensor>& losses, const Totals& totals);

  const CompileOptions options_;
  distribute::Strategy& strategy_;
  const std::weak_ptr<const void> strategy_lifetime_;
  std::vector<std::string> metric_names_;  // of metrics, then of weighted_metrics
  double loss_sum_ = 0;                    // of step losses times rows
  int64_t rows_ = 0;
};

// The outputs of all replicas, also those of other processes, for the x of a batch: a bare x or the
// first item of a tuple. NotImplementedError for ragged and sparse outputs of several processes.
std::vector<Tensors> predict_step(distribute::Strategy& strategy, Model& model,
                                  const Trainer::Batch& batch);

}  // namespace keel
