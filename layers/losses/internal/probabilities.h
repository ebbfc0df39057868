// Helpers that the cross entropies share.
#pragma once

#include <keel/autodiff/ops.h>

namespace keel::loss_internal {

// Clips probabilities to [1e-7, 1 - 1e-7].
inline Tensor clip_probabilities(const Tensor& p) {
  constexpr double kEpsilon = 1e-7;
  return ops::clip_by_value(p, kEpsilon, 1 - kEpsilon);
}

// Returns y (1 - smoothing) + smoothing share.
inline Tensor smoothed(const Tensor& y, double smoothing, double share) {
  return smoothing == 0 ? y : ops::shift(ops::scale(y, 1 - smoothing), smoothing * share);
}

}  // namespace keel::loss_internal
