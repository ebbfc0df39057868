// The step that predict is made of.
#pragma once

#include <vector>

#include <keel/distribute/strategy.h>
#include <keel/layers/training/model.h>

namespace keel {

// The outputs (Model::predict_step) of all replicas, also those of other processes, for the x of a
// batch: a bare x or the first item of a tuple. NotImplementedError for ragged and sparse outputs
// of several processes.
std::vector<Tensors> predict_step(distribute::Strategy& strategy, Model& model,
                                  const distribute::PerReplica<Tensors>& batch);

// The x of an element: the first item of a tuple, or all of it.
const Tensors& features_of(const Tensors& element);

}  // namespace keel
