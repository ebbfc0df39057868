// gemm: c = op(a) . op(b) on raw row-major memory.
#pragma once

#include <cstdint>

#include <keel/framework/matmul_precision.h>

namespace keel::kernels {

// What becomes of the sums before they are stored.
struct GemmEpilogue {
  const float* bias = nullptr;  // [n], added to every row; or none
  bool relu = false;            // then max(x, 0), NaN kept
};

// c[i, j] = sum over p of op(a)[i, p] * op(b)[p, j], with i < m, j < n, p < k.
// a is [m, k], or [k, m] if transpose_a; b is [k, n], or [n, k] if transpose_b; c is [m, n] and
// overlaps neither. Each element of c is one chain of fused multiply-adds in the order of p, except
// that float products with n == 1 (or m == 1 and b transposed) have 64 sums, fixed by k. So the
// bits depend neither on the processor, nor on the number of workers, nor, for n > 1 and b not
// transposed, on how many rows are multiplied at once. For MatmulPrecision::kHigh see
// framework/matmul_precision.h.
void gemm(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k,
          bool transpose_a, bool transpose_b, const GemmEpilogue& epilogue = {},
          MatmulPrecision precision = MatmulPrecision::kHighest);
void gemm(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k,
          bool transpose_a, bool transpose_b);

}  // namespace keel::kernels
