// The models of models/click_work.h, implemented with libtorch.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "benchmarks/models/click_work.h"

namespace keel::bench {

// Seconds of one training step.
struct StepSplit {
  double lookup = 0, forward = 0, backward = 0, update = 0;
};

struct ModelPeerOptions {
  ClickWork work = {};
  // Uses one table for all columns: the ids of each column are shifted behind those of the
  // preceding ones, so one lookup serves all. If false, each column has its own EmbeddingBag.
  bool joint_table = false;
  bool training = true;
};

class ModelPeer {
 public:
  virtual ~ModelPeer() = default;
  // Runs one step on a batch and returns its mean loss before the step.
  virtual float train(int batch) = 0;
  virtual StepSplit last_split() const = 0;
  // Returns the scores of a batch, [samples], valid until the next call.
  virtual std::span<const float> predict(int batch) = 0;
};

// Both arguments may be destroyed after the call. Returns null without libtorch.
std::unique_ptr<ModelPeer> make_model_peer(const ModelPeerOptions& options,
                                           const std::vector<ClickBatch>& batches,
                                           const StartValues& start);

}  // namespace keel::bench
