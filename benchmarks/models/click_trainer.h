// A training loop for the models of click_work.h, hand-written with GradientTape.
#pragma once

#include <memory>
#include <vector>

#include <keel/distribute/strategy.h>
#include <keel/optimizers/optimizer.h>

#include "benchmarks/models/click_model.h"

namespace keel::bench {

// The replicas, each with its piece of a batch.
struct ClickCores {
  int hosts = 1;
  int cores = 1;  // per host

  int replicas() const { return hosts * cores; }
};

// Trains under a TPUStrategy. Batches are split for the replicas before the first step.
class ClickTrainer {
 public:
  ClickTrainer(const ClickWork& work, const std::vector<ClickBatch>& batches,
               const ClickCores& cores);

  float train(int batch);  // runs one step and returns its loss
  // Replaces a batch by one of as many samples.
  void set_batch(int index, const ClickBatch& batch);
  const ClickModel& model() const { return model_; }
  int replicas() const { return cores_.replicas(); }
  StartValues values() const { return start_values(model_); }

 private:
  const ClickCores cores_;
  const ClickWork work_;
  const int64_t samples_;  // per batch
  const std::unique_ptr<distribute::Strategy> strategy_;
  const ClickModel model_;
  const OptimizerHandle optimizer_;
  std::vector<distribute::PerReplica<Tensors>> batches_;
};

}  // namespace keel::bench
