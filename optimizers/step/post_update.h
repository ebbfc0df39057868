// What follows the updates of a step of an optimizer.
#pragma once

#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/optimizers/step/step_plan.h>

namespace keel {

// Counts a variable without gradient in its average, if the plan has averages.
void average_unchanged(const StepPlan& plan, const UpdateRule& rule, const Variable& variable,
                       const std::vector<Variable>& slots);

// Makes of the value what the variable's constraint makes of it. ValueError if that has another
// shape or dtype.
void apply_constraint(const Variable& variable);

}  // namespace keel
