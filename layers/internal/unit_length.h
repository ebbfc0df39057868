// How layers scale vectors to length 1.
#pragma once

#include <limits>
#include <vector>

#include <keel/autodiff/ops.h>

namespace keel {

// x / max(|x|, least), where |x| is the root of the sum of squares over the axes. The bound stands
// before the root, so that the gradient of a zero vector is finite.
inline Tensor unit_length(const Tensor& x, const std::vector<int>& axes, double least) {
  const Tensor squares = ops::sum(ops::square(x), axes, true);
  const double top = std::numeric_limits<double>::infinity();
  return x * ops::rsqrt(ops::clip_by_value(squares, least * least, top));
}

}  // namespace keel
