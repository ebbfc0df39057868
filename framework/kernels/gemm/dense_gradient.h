// dense_gradient: the gradients of y = x w + b, or of y = max(x w + b, 0), all at once.
#pragma once

#include <cstdint>

#include <keel/framework/matmul_precision.h>

namespace keel::kernels {

struct DenseGradientArgs {
  int64_t rows, in, out;
  const float* x = nullptr;   // [rows, in]
  const float* w = nullptr;   // [in, out]
  const float* y = nullptr;   // [rows, out] if it was max(x w + b, 0): no gradient where y <= 0
  const float* dy = nullptr;  // [rows, out]
  // What is asked for; null where nothing is.
  float* dx = nullptr;  // [rows, in]
  float* dw = nullptr;  // [in, out]
  float* db = nullptr;  // [out]
  MatmulPrecision precision = MatmulPrecision::kHighest;
};

// On one thread, pieces of rows are taken through all steps while they are in the L2 cache; several
// threads share each step. The bits are the same: each element of dx and dw is one sum in order,
// and db is made of the sums of fixed blocks. At MatmulPrecision::kHigh, where gemm multiplies
// both products in tiles, every step takes all rows, by gemm.
void dense_gradient(const DenseGradientArgs& args);

}  // namespace keel::kernels
