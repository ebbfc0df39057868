// Converts pixel values between two ranges.
#pragma once

#include <keel/autodiff/ops.h>
#include <keel/layers/image/factor_range.h>

namespace keel {

// Returns the values of `from` moved and scaled to `to`.
inline Tensor rescaled(const Tensor& images, const ValueRange& from, const ValueRange& to) {
  if (from.low == to.low && from.high == to.high) return images;
  return (images - from.low) * ((to.high - to.low) / (from.high - from.low)) + to.low;
}

}  // namespace keel
