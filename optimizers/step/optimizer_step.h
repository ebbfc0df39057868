// The updates of one optimizer step, in one replica or in the replicas of a strategy.
#pragma once

#include <vector>

#include <keel/distribute/communicator.h>
#include <keel/optimizers/step/lazy_table.h>
#include <keel/optimizers/step/step_agreement.h>
#include <keel/optimizers/step/step_plan.h>

namespace keel {

// A variable that a step changes. No other handle may hold its value or the values of its slots,
// because the step writes them in place.
struct StepVariable {
  Variable variable;
  Gradient gradient;  // gradient of this replica; may be absent if other replicas have one
  GradientKind form = GradientKind::kDense;  // not kNone
  double weight_decay = 0;                   // 0: the variable does not decay
  VariableMemory memory = {};                // slots are in the order of OptimizerSlots::slots
  LazyTable* lazy = nullptr;                 // set if the step defers rows of this variable
  // True: the sums of a kRows gradient have the bits that sums of dense gradients have.
  bool sums_as_dense = false;
};

// Performs a step without communication.
void step_local(const StepPlan& plan, const UpdateRule& rule,
                const std::vector<StepVariable>& variables);

// Performs a step by the sums of the gradients of all replicas. Collective: all replicas pass equal
// arguments except for their gradients. Each replica updates its shard of the elements and rows.
// Float32 only. When all values are written, one replica of each process runs `on_last_arrival`
// before any replica returns. With an attachment, which requires a dense gradient, returns false
// and updates nothing if the attachment is not accepted.
bool step_replicated(distribute::Communicator& communicator, const StepPlan& plan,
                     const UpdateRule& rule, const std::vector<StepVariable>& variables,
                     const distribute::Communicator::OnLastArrival& on_last_arrival,
                     const distribute::Communicator::Attachment* attachment = nullptr);

}  // namespace keel
