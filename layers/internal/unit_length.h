// Scales vectors to unit length.
#pragma once

#include <limits>
#include <vector>

#include <keel/autodiff/ops.h>

namespace keel {

// Returns x / max(|x|, least), where |x| is the square root of the sum of squares over the axes.
// The bound is applied before the square root, so that the gradient of a zero vector is finite.
inline Tensor unit_length(const Tensor& x, const std::vector<int>& axes, double least) {
  const Tensor squares = ops::sum(ops::square(x), axes, true);
  const double top = std::numeric_limits<double>::infinity();
  return x * ops::rsqrt(ops::clip_by_value(squares, least * least, top));
}

}  // namespace keel
