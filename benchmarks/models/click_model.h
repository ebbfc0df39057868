// The models of click_work.h, implemented with Keel's public API.
#pragma once

#include <keel/layers/core/dense.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/interaction/interaction.h>

#include "benchmarks/models/click_work.h"

namespace keel::bench {

struct ClickModel {
  layers::TPUEmbedding embedding;
  Functional model;             // inputs {"numbers", "c00", ... "c25"}
  std::vector<Variable> dense;  // in the order of StartValues
};

enum class ClickOutput { kLogits, kProbabilities };

// Creates the model under the current strategy.
ClickModel make_click_model(const ClickWork& work, ClickOutput output = ClickOutput::kLogits);
StartValues start_values(const ClickModel& model);

// Returns the rows [begin, end) of a batch: features, and labels of shape [end - begin, 1].
Tensors click_tensors(const ClickWork& work, const ClickBatch& batch, int64_t begin, int64_t end);

}  // namespace keel::bench
