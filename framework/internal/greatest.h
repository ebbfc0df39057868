// The position of the greatest element of a row.
#pragma once

#include <cstdint>

namespace keel {

// Returns the first position of the greatest of n > 0 elements, which are `stride` apart. NaN is
// greater than all numbers, as for numpy, JAX and PyTorch.
template <class T>
int64_t position_of_greatest(const T* values, int64_t n, int64_t stride = 1) {
  int64_t at = 0;
  T greatest = values[0];
  for (int64_t i = 1; i < n && greatest == greatest; ++i) {
    const T x = values[i * stride];
    if (x > greatest || x != x) {
      at = i;
      greatest = x;
    }
  }
  return at;
}

}  // namespace keel
