// smallest_root: the least divisor of update rules.
#pragma once

#include <cmath>
#include <limits>

namespace keel::kernels {

// The square root of the smallest positive number. max(sqrt(x), smallest_root()) is sqrt(x) for
// every x but 0, so that a gradient of zero over an accumulator of zero gives 0 instead of 0 / 0.
// (A condition on the gradient would keep loops from being vectorized.)
template <class T>
T smallest_root() {
  return std::sqrt(std::numeric_limits<T>::denorm_min());
}

}  // namespace keel::kernels
