// predict_step(): one step of Model::predict.
#pragma once

#include <vector>

#include <keel/distribute/strategy.h>
#include <keel/layers/training/model.h>

namespace keel {

// Returns the outputs (Model::predict_step) of all replicas, including those of other processes,
// for the x of a batch: a bare x or the first item of a tuple. Throws NotImplementedError for
// ragged and sparse outputs if there are several processes.
std::vector<Tensors> predict_step(distribute::Strategy& strategy, Model& model,
                                  const distribute::PerReplica<Tensors>& batch);

// Returns the x of an element: the first item of a tuple, otherwise the element itself.
const Tensors& features_of(const Tensors& element);

}  // namespace keel
