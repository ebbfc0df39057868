// gemm_bf16: gemm (framework/kernels/gemm/gemm.h) of float32 matrices whose elements are rounded to
// bfloat16 when they are read.
#pragma once

#include <cstdint>

#include <keel/framework/kernels/gemm/gemm.h>

namespace keel::kernels {

// Computes c[i, j] = sum over p of r(op(a)[i, p]) * r(op(b)[p, j]) in float32, where r(x) is the
// bfloat16 nearest to x (ties to even). Shapes and epilogue are those of gemm().
//
// At MatmulPrecision::kHighest each element of c is one sum in the order p = 1, 0, 3, 2, 5, ...,
// which is the order of the AVX512-BF16 instructions. Subnormal operands, products and sums are
// zero. Processors without these instructions compute the same bits, more slowly than gemm().
// Products with n == 1 and a not transposed have several partial sums, fixed by k. So the bits
// depend neither on the processor nor on the number of workers, nor, for n > 1, on the number of
// rows that are multiplied at once.
//
// At MatmulPrecision::kHigh processors with AMX compute products with n > 1 in tile registers if
// Linux lets the process use them. The order of these sums differs: in every block of 32 p, the
// even p form one sum and the odd p another, and both together are added to the running sum.
void gemm_bf16(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k,
               bool transpose_a, bool transpose_b, const GemmEpilogue& epilogue = {},
               MatmulPrecision precision = MatmulPrecision::kHighest);

}  // namespace keel::kernels
