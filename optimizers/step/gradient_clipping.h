// Gradient clipping (clipnorm, clipvalue, global_clipnorm).
#pragma once

#include <span>
#include <vector>

#include <keel/optimizers/step/step_plan.h>

namespace keel {

// Returns true if a step needs the norms of whole gradients before its first update.
bool clips_by_norm(const StepPlan& plan);

// Returns the factor for the gradient of each variable, given its sum of squares. The factors are
// NaN if the global norm is not finite; with clipnorm, the factor of a variable is NaN if its norm
// is NaN. An invalid gradient thereby becomes visible in the weights instead of being clipped away.
std::vector<double> clip_factors(const StepPlan& plan, std::span<const double> squares);

}  // namespace keel
