// The gradient of a loss, from that of the scaled loss.
#pragma once

#include <keel/autodiff/variable.h>

namespace keel {

// Returns the gradient divided by the scale of the loss; an absent one stays absent.
Gradient unscaled_gradient(const Gradient& gradient, float scale);

// Returns true if all elements are finite; an absent gradient has none.
bool is_finite(const Gradient& gradient);

}  // namespace keel
