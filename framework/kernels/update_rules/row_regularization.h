// The L2 penalty and the limit of the norm of a row, for engines and for variables.
#pragma once

#include <cmath>
#include <cstdint>

#include <keel/framework/kernels/update_rules/sum_of_squares.h>

namespace keel::kernels {

// Adds 2 l2 w, the gradient of l2 |w|^2, to the gradient of a row of n elements.
template <class T>
void add_l2_gradient(const T* weights, int64_t n, double l2, T* gradient) {
  const T factor = static_cast<T>(2 * l2);
  for (int64_t i = 0; i < n; ++i) gradient[i] += factor * weights[i];
}

// Scales a row of n elements down to the norm `most` if its Euclidean norm is greater.
template <class T>
void limit_norm(T* weights, int64_t n, double most) {
  const double norm = std::sqrt(sum_of_squares(weights, n));
  if (!(norm > most)) return;
  const T factor = static_cast<T>(most / norm);
  for (int64_t i = 0; i < n; ++i) weights[i] *= factor;
}

}  // namespace keel::kernels
