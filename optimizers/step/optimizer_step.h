// The updates of one step of an optimizer, alone or in the replicas of a strategy.
#pragma once

#include <vector>

#include <keel/distribute/communicator.h>
#include <keel/optimizers/step/lazy_table.h>
#include <keel/optimizers/step/step_agreement.h>
#include <keel/optimizers/step/step_plan.h>

namespace keel {

// A variable that a step changes. Nobody holds its value or those of its slots.
struct StepVariable {
  Variable variable;
  Gradient gradient;                         // of this replica; may be none where others have one
  GradientKind form = GradientKind::kDense;  // not kNone
  bool decays = true;                        // by the plan's weight_decay
  VariableMemory memory = {};                // slots in the order of OptimizerSlots::slots
  LazyTable* lazy = nullptr;  // the rows that wait, if such a step leaves rows behind
};

void step_alone(const StepPlan& plan, const UpdateRule& rule,
                const std::vector<StepVariable>& variables);

// Collective: all replicas pass the same but for their gradients, whose sums are what counts. Each
// updates the elements and rows that communicators deal to it. Float32 only. When all is written
// one of each process runs `on_last_arrival`, before any returns. With an attachment, which needs a
// dense gradient: false, and nothing is updated, if it is not accepted.
bool step_together(distribute::Communicator& communicator, const StepPlan& plan,
                   const UpdateRule& rule, const std::vector<StepVariable>& variables,
                   const distribute::Communicator::OnLastArrival& on_last_arrival,
                   const distribute::Communicator::Attachment* attachment = nullptr);

}  // namespace keel
