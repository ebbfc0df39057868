// gemm: the matrix product c = op(a) . op(b) on raw row-major memory.
#pragma once

#include <cstdint>

#include <keel/framework/matmul_precision.h>

namespace keel::kernels {

// Operations on the sums before they are stored in c.
struct GemmEpilogue {
  const float* bias = nullptr;  // [n], added to every row; null: none
  bool relu = false;            // then max(x, 0); NaN stays NaN
};

// Computes c[i, j] = sum over p of op(a)[i, p] * op(b)[p, j], with i < m, j < n, p < k.
// a is [m, k], or [k, m] if transpose_a; b is [k, n], or [n, k] if transpose_b; c is [m, n] and
// must not overlap a or b.
//
// Each element of c is one chain of fused multiply-adds in the order of p. Float products
// that reduce to dot products are the exception: with n == 1 and a not transposed, or m == 1 and b
// transposed, they have 64 partial sums, fixed by k. So the bits depend neither on the processor
// nor on the number of workers. For n > 1 and b not transposed they do not depend on the number of
// rows that are multiplied at once either. framework/matmul_precision.h describes
// MatmulPrecision::kHigh.
void gemm(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k,
          bool transpose_a, bool transpose_b, const GemmEpilogue& epilogue = {},
          MatmulPrecision precision = MatmulPrecision::kHighest);
void gemm(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k,
          bool transpose_a, bool transpose_b);

}  // namespace keel::kernels
