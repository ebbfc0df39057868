// TrainStep: one training or test step over a global batch.
#pragma once

#include <vector>

#include <keel/distribute/distributed_dataset.h>
#include <keel/layers/training/internal/step_context.h>
#include <keel/layers/training/internal/trainer.h>

namespace keel {

// Runs Model::train_step or Model::test_step in every replica, and adds the results to the logs of
// the trainer. The loss is the loss over the global batch even if replicas have different numbers
// of rows, or none.
//
// Guarantees after an error:
// - If labels or weights are invalid, nothing has changed. All processes throw together.
// - If the loss is NaN or a metric rejects the predictions, the trained weights are unchanged, but
//   moving averages have been updated from the batch.
class TrainStep {
 public:
  using Batch = Trainer::Batch;

  // Validates the batch, counts its rows, and creates the model's weights if it is not built.
  // Throws the ValueErrors of Model::fit, and RuntimeError if a training step has no optimizer.
  TrainStep(Trainer& trainer, Model& model, const Batch& batch, StepContext context);
  // Computes losses outside of a step, in a training loop of the user's own.
  TrainStep(Trainer& trainer, Model& model) : trainer_(trainer), model_(model) {}
  ~TrainStep();
  TrainStep(const TrainStep&) = delete;
  TrainStep& operator=(const TrainStep&) = delete;

  // Runs the step. `next`, if not null, is the batch of the following step; it is passed to
  // Model::prefetch.
  void run(const Batch* next = nullptr);

  // Called in a replica; implement the members of Model with the corresponding names.
  Logs train(const Tensors& element);
  Logs test(const Tensors& element);
  Tensor loss(const StepData& data, const Tensors& outputs);
  void update_metrics(const StepData& data, const Tensors& outputs);

 private:
  // The values that one local replica adds to the sums of the step.
  struct Contribution {
    Logs losses = {};                        // by output; empty if there is only one loss
    std::vector<Tensor> metric_states = {};  // states of batch_metrics(); see Trainer::StepSums
  };
  Logs run_replica(const Tensors& element, const Batch* next);
  void prefetch(const Tensors& element) const;
  // Returns the factor of activity losses that makes each row of the global batch count equally.
  double activity_loss_scale(const Tensors& element) const;
  // Returns true if the step must stop because of the loss. Throws ValueError if NaN is not
  // tolerated.
  bool is_nan(double loss) const;
  Trainer::StepSums sums_over_replicas(const distribute::PerReplica<Logs>& returned) const;
  Tensor sum(std::vector<Tensor> losses, Trainer::StepSums& out) const;

  Trainer& trainer_;
  Model& model_;
  distribute::Strategy& strategy_ = trainer_.strategy();
  const Batch* batch_ = nullptr;
  const StepContext context_ = {};
  std::vector<Contribution> contributions_;  // one per local replica
};

}  // namespace keel
