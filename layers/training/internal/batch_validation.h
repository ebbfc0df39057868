// What is checked of a batch before a step, by all processes of a job together.
#pragma once

#include <keel/distribute/per_replica.h>
#include <keel/distribute/process_group.h>
#include <keel/framework/tensor_like.h>
#include <keel/layers/training/internal/trainer.h>

namespace keel {

// Rows of the global batch, of which `batch` is what the replicas here have. Collective.
// ValueError in all processes for a batch without rows, for tensors of different numbers of rows,
// and for a label or a sample weight that is NaN, with its row.
int64_t check_batch(const distribute::PerReplica<Tensors>& batch, distribute::ProcessGroup& group,
                    const StepPlace& place);

}  // namespace keel
