// sum_of_squares: what norms are made of.
#pragma once

#include <cstdint>

namespace keel::kernels {

// Of n elements, in double: each of eight lanes sums every eighth element, then they are added in
// order. The bits depend on where a block begins and ends, so cut blocks by the problem alone.
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
