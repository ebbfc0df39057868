// Combiner: how the rows of an embedding table that belong to one sample are combined.
#pragma once

namespace keel::kernels {

// The sum of the rows, the sum divided by the sum of the weights, or the sum divided by the square
// root of the sum of the squared weights. A sample without rows gives zeros.
enum class Combiner {
  kSum,    // "sum"
  kMean,   // "mean"
  kSqrtN,  // "sqrtn"
};

}  // namespace keel::kernels
