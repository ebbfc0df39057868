// Stages of an optimizer step that follow the updates.
#pragma once

#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/optimizers/step/step_plan.h>

namespace keel {

// Updates the average of a variable without a gradient by its unchanged value, if the plan has
// averages.
void average_unchanged(const StepPlan& plan, const UpdateRule& rule, const Variable& variable,
                       const std::vector<Variable>& slots);

// Replaces the value by the result of the variable's constraint. Throws ValueError if the result
// has another shape or dtype.
void apply_constraint(const Variable& variable);

// Limits the norm of every row to RowRegularization::max_norm. For steps by dense gradients; those
// by rows limit the rows that they update.
void limit_row_norms(const Variable& variable);

}  // namespace keel
