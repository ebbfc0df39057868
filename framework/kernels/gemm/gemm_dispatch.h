// The implementations from which gemm and gemm_bf16 (framework/kernels/gemm/gemm.h, gemm_bf16.h)
// select by processor and precision. The multiply-add implementation of gemm is in gemm.cc.
#pragma once

#include <keel/framework/kernels/gemm/amx_tiles.h>
#include <keel/framework/kernels/gemm/gemm_args.h>

namespace keel::kernels::internal {

// gemm_bf16 in vector registers, on any processor, with the same bits.
void gemm_bf16_in_vectors(const Product& x);
// The implementation of gemm_bf16_in_vectors() without bfloat16 instructions.
void gemm_bf16_portable(const Product& x);

#if KEEL_AVX512

void gemm_bf16_avx512(const Product& x);  // requires has_avx512_bf16()

// gemm_bf16 in tile registers. Requires may_use_tiles() (framework/kernels/gemm/amx_tiles.h).
void gemm_bf16_in_tiles(const Product& x);
// gemm at MatmulPrecision::kHigh (framework/matmul_precision.h). Requires may_use_tiles().
void gemm_in_tiles(const Product& x);

#endif

// Returns whether gemm() at this precision multiplies matrices of this shape in tile registers.
bool multiplies_in_tiles(MatmulPrecision precision, int64_t m, int64_t n, int64_t k);

}  // namespace keel::kernels::internal
