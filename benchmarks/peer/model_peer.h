// The models of models/click_work.h in libtorch.
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
  // One table for all columns, the ids of each moved behind those before: one lookup for all. Known
  // as a trick; else one EmbeddingBag for each column.
  bool joint_table = false;
  bool training = true;
};

class ModelPeer {
 public:
  virtual ~ModelPeer() = default;
  // One step on a batch; its mean loss before the step.
  virtual float train(int batch) = 0;
  virtual StepSplit last_split() const = 0;
  // The scores of a batch, [samples]; they live until the next call.
  virtual std::span<const float> predict(int batch) = 0;
};

// Both arguments need not live on. Null where there is no libtorch.
std::unique_ptr<ModelPeer> make_model_peer(const ModelPeerOptions& options,
                                           const std::vector<ClickBatch>& batches,
                                           const StartValues& start);

}  // namespace keel::bench
