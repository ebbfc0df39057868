// gemm_bf16: gemm (framework/kernels/gemm/gemm.h) of float32 matrices whose elements are rounded to
// bfloat16 as they are read.
#pragma once

#include <cstdint>

#include <keel/framework/kernels/gemm/gemm.h>

namespace keel::kernels {

// c[i, j] = sum over p of r(op(a)[i, p]) * r(op(b)[p, j]) in float32, r(x) the bfloat16 nearest to
// x, of two the even one. Shapes and epilogue as in gemm.
//
// At MatmulPrecision::kHighest each element of c is one sum in the order p = 1, 0, 3, 2, 5, ...,
// that of AVX512-BF16, in which subnormal operands, products and sums are zero. Processors without
// these instructions compute the same bits, more slowly than gemm. Products with n == 1 have
// several sums, fixed by k, where a is not transposed. So the bits depend neither on the processor,
// nor on the number of workers, nor, for n > 1, on how many rows are multiplied at once.
//
// At MatmulPrecision::kHigh processors with AMX, where Linux lets the process use tiles, compute
// products with n > 1 in tiles. Those have another order: of every 32 p from 0 on, the even p are
// one sum and the odd p another, and both together are added to the sum so far.
void gemm_bf16(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k,
               bool transpose_a, bool transpose_b, const GemmEpilogue& epilogue = {},
               MatmulPrecision precision = MatmulPrecision::kHighest);

}  // namespace keel::kernels
