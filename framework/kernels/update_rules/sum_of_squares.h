// sum_of_squares: the sum of squares from which norms are computed.
#pragma once

#include <cstdint>

namespace keel::kernels {

// Returns the sum of squares of n elements, in double. Each of eight lanes sums every eighth
// element; then the lanes are added in order. The bits depend on where a block begins and ends, so
// choose blocks by the problem size alone, never by the number of workers.
template <class T>
double sum_of_squares(const T* values, int64_t n) {
  constexpr int64_t kLanes = 8;
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) {
      const double x = values[i + l];
      lanes[l] += x * x;
    }
  }
  for (int64_t l = 0; i < n; ++i, ++l) {
    const double x = values[i];
    lanes[l] += x * x;
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace keel::kernels
