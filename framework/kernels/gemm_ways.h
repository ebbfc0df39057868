// The ways in which gemm and gemm_bf16 (framework/kernels/gemm.h, gemm_bf16.h) multiply, but for
// gemm's own.
#pragma once

#include "framework/kernels/amx_tiles.h"
#include "framework/kernels/gemm_product.h"

namespace keel::kernels::internal {

// gemm_bf16 in vector registers: on any processor.
void gemm_bf16_in_vectors(const Product& x);

#if KEEL_AMX

// In tile registers, if this process may use them (framework/kernels/amx_tiles.h).
void gemm_bf16_in_tiles(const Product& x);
// gemm as Float32Products::kBfloat16x6 makes it (framework/float32_products.h).
void gemm_in_tiles(const Product& x);

#endif

// Whether gemm, asked for them, multiplies matrices of this shape in tiles.
bool multiplies_in_tiles(Float32Products products, int64_t m, int64_t n, int64_t k);

}  // namespace keel::kernels::internal
