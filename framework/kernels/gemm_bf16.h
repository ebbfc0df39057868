// gemm_bf16: gemm (framework/kernels/gemm.h) of float32 matrices whose elements are rounded to
// bfloat16 as they are read.
#pragma once

#include <cstdint>

#include "framework/kernels/gemm.h"

namespace keel::kernels {

// c[i, j] = sum over p of r(op(a)[i, p]) * r(op(b)[p, j]) in float32, r(x) the bfloat16 nearest to
// x, of two the even one. Shapes and epilogue as in gemm.
//
// Each element of c is one sum in the order p = 1, 0, 3, 2, 5, ..., that of the processors that
// multiply bfloat16. Those with tile registers (AMX), where the kernel lets the process use them,
// have another: of every 32 p from 0 on, those of even p are one sum, those of odd p one, and both
// together are added to what was before. Products with n == 1 are not made in tiles, and have
// several sums, fixed by k, where a is not transposed. So the bits depend neither on the number of
// workers nor, for n > 1, on how many rows are multiplied at once; on the processor only by whether
// it has tiles: those that cannot multiply bfloat16 emulate the first order, more slowly than gemm.
// (Of subnormal numbers alone: processors that multiply bfloat16 take and give 0.)
void gemm_bf16(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k,
               bool transpose_a, bool transpose_b, const GemmEpilogue& epilogue = {});

}  // namespace keel::kernels
