// Normalization by the moments of groups, and its gradients: what layer, group, batch and RMS
// normalization have in common.
//
// x is [samples, steps, groups, width]. Each group of a sample has a mean m and a variance v over
// its steps * width elements:
//
//   y = (x - s) / sqrt(v + epsilon) * gamma + beta
//
// where s is m or 0, and gamma and beta are [groups, width]. The rows of a matrix are samples of
// one step and one group. The channels of a batch are groups of width 1 of a single sample.
#pragma once

#include <cstdint>

namespace keel::kernels {

// The formulas of m and v.
enum class Moments {
  kCentered,    // m = mean(x), v = mean((x - m)^2)
  kDifference,  // m = mean(x), v = max(mean(x^2) - m^2, 0) in the precision of x
  kMeanSquare   // m = 0, v = mean(x^2)
};

// The sizes of x, and the formula.
struct Normalization {
  int64_t samples = 0, steps = 1, groups = 1, width = 0;
  double epsilon = 0;
  Moments moments = Moments::kCentered;
  bool subtract_mean = true;  // s = m, else s = 0

  int64_t channels() const { return groups * width; }
};

// Computes y, and the statistics mean and variance [samples, groups], which are 0 if x has no
// elements. Null gamma and beta stand for ones and zeros. T is float or double. The bits do not
// depend on the number of workers.
template <class T>
void normalize(const Normalization& n, const T* x, const T* gamma, const T* beta, T* y, T* mean,
               T* variance);

// The operands and statistics of normalize(), and the gradient of y. The gradients of x, gamma and
// beta are computed where they are not null.
template <class T>
struct NormalizationGradients {
  const T *x = nullptr, *gamma = nullptr, *mean = nullptr, *variance = nullptr, *dy = nullptr;
  T *dx = nullptr, *dgamma = nullptr, *dbeta = nullptr;
};
// Computes the gradients of sum(y * dy).
template <class T>
void normalize_gradient(const Normalization& n, const NormalizationGradients<T>& g);

}  // namespace keel::kernels
