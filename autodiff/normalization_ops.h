// Normalization by mean and variance as one differentiable function.
#pragma once

#include <keel/framework/tensor.h>

namespace keel::ops {

// The formulas of the mean m and the variance v of a group.
enum class Moments {
  kCentered,    // m = mean(x), v = mean((x - m)^2)
  kDifference,  // m = mean(x), v = max(mean(x^2) - m^2, 0) in the precision of x
  kMeanSquare   // m = 0, v = mean(x^2)
};

// Options of normalize().
struct NormalizeOptions {
  double epsilon = 1e-3;                 // added to the variance
  Moments moments = Moments::kCentered;  // how mean and variance are computed
  bool subtract_mean = true;             // subtract the mean from x
};

// The result of normalize(). Only y has a gradient.
struct Normalized {
  Tensor y;         // of the shape of x
  Tensor mean;      // [samples, groups]
  Tensor variance;  // [samples, groups]
};

// Returns y = (x - m) / sqrt(v + epsilon) * gamma + beta for x [samples, steps, groups, width],
// with the mean m and the variance v over the steps and the width of each group of a sample; with
// m = 0 in this formula unless `subtract_mean`. gamma and beta are [groups * width], or empty
// handles for ones and zeros. The moments of an empty group are 0. The gradients of x, gamma and
// beta are those through m and v as well; that of v ignores the max with 0. The bits do not depend
// on the number of workers. Takes float32 and float64; throws TypeError for other or different
// dtypes and ValueError for shapes that do not match.
Normalized normalize(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                     const NormalizeOptions& options = {});

}  // namespace keel::ops
