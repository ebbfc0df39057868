// gemm_bf16: gemm (framework/kernels/gemm.h) of float32 matrices whose elements are rounded to
// bfloat16 as they are read.
#pragma once

#include <cstdint>

#include "framework/kernels/gemm.h"

namespace keel::kernels {

// c[i, j] = sum over p of r(op(a)[i, p]) * r(op(b)[p, j]) in float32, r(x) the bfloat16 nearest to
// x, of two the even one. Shapes and epilogue as in gemm.
// Each element of c is one sum in the order p = 1, 0, 3, 2, 5, ..., that of the processors that
// multiply bfloat16, except that products with n == 1 have several, fixed by k. So the bits depend
// neither on the number of workers nor, for n > 1, on how many rows are multiplied at once, nor on
// the processor: others emulate it, more slowly than gemm. (Of subnormal numbers alone: those
// processors take and give 0.)
void gemm_bf16(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k,
               bool transpose_a, bool transpose_b, const GemmEpilogue& epilogue = {});

}  // namespace keel::kernels
