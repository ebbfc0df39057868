// smallest_root: a positive lower bound for the divisors of update rules.
#pragma once

#include <cmath>
#include <limits>

namespace keel::kernels {

// Returns the square root of the smallest positive number. max(sqrt(x), smallest_root()) equals
// sqrt(x) for every x except 0, so a zero gradient over a zero accumulator gives 0 instead of
// 0 / 0. A condition on the gradient would prevent loops from being vectorized.
template <class T>
T smallest_root() {
  return std::sqrt(std::numeric_limits<T>::denorm_min());
}

}  // namespace keel::kernels
