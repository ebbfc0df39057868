// dense_gradient: computes all gradients of y = x w + b, or of y = max(x w + b, 0), in one call.
#pragma once

#include <cstdint>

#include <keel/framework/matmul_precision.h>

namespace keel::kernels {

// The operands and results of dense_gradient().
struct DenseGradientArgs {
  int64_t rows, in, out;
  const float* x = nullptr;   // [rows, in]
  const float* w = nullptr;   // [in, out]
  const float* y = nullptr;   // [rows, out] if y = max(x w + b, 0): no gradient where y <= 0
  const float* dy = nullptr;  // [rows, out]
  // The gradients to compute; null: not requested.
  float* dx = nullptr;  // [rows, in]
  float* dw = nullptr;  // [in, out]
  float* db = nullptr;  // [out]
  MatmulPrecision precision = MatmulPrecision::kHighest;
};

// Computes the requested gradients. On one thread, each piece of rows goes through all steps while
// it is in the L2 cache; several threads share each step. The bits are the same: each element of dx
// and dw is one sum in order, and db is computed from the sums of fixed blocks. At
// MatmulPrecision::kHigh, if gemm() would compute both products in tile registers, every step
// processes all rows, by gemm().
void dense_gradient(const DenseGradientArgs& args);

}  // namespace keel::kernels
