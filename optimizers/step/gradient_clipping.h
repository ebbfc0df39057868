// Clipping of gradients (clipnorm, clipvalue, global_clipnorm).
#pragma once

#include <span>
#include <vector>

#include <keel/optimizers/step/step_plan.h>

namespace keel {

// True if a step has to know norms of whole gradients before its first update.
bool clips_by_norm(const StepPlan& plan);

// By how much to multiply the gradient of each variable, given its sum of squares. NaN if a
// global norm is not finite, and for the norms of single variables if one is NaN: bad gradients
// are to show.
std::vector<double> clip_factors(const StepPlan& plan, std::span<const double> squares);

}  // namespace keel
