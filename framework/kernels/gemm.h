// gemm: c = op(a) . op(b) on raw row-major memory.
#pragma once

#include <cstdint>

namespace keel::kernels {

// c[i, j] = sum over p of op(a)[i, p] * op(b)[p, j], with i < m, j < n, p < k.
// a is [m, k], or [k, m] if transpose_a; b is [k, n], or [n, k] if transpose_b; c is [m, n] and
// overlaps neither. Rows of c are cut into fixed blocks for the workers, so the bits do not
// depend on their number.
void gemm(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k,
          bool transpose_a, bool transpose_b);
void gemm(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k,
          bool transpose_a, bool transpose_b);

}  // namespace keel::kernels
