// check_batch(): validates a global batch before a step, jointly in all processes of a job.
#pragma once

#include <keel/distribute/distributed_dataset.h>
#include <keel/distribute/process_group.h>
#include <keel/framework/tensor_like.h>
#include <keel/layers/training/internal/step_context.h>

namespace keel {

// Returns the number of rows of the global batch. `batch` holds the parts of the local replicas.
// Collective. Throws ValueError in all processes if the batch has no rows, if its tensors differ in
// their number of rows, or if a label or a sample weight is NaN; the message names the row.
int64_t check_batch(const distribute::PerReplica<Tensors>& batch, distribute::ProcessGroup& group,
                    const StepContext& context);

}  // namespace keel
