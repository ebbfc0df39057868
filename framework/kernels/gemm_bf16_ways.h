// The ways in which gemm_bf16 (framework/kernels/gemm_bf16.h) multiplies.
#pragma once

#include "framework/kernels/gemm_product.h"

namespace keel::kernels::internal {

// In vector registers: on any processor.
void gemm_bf16_in_vectors(const Product& x);

// In tile registers, if this process may use them (framework/kernels/amx_tiles.h). Defined where
// KEEL_AMX is 1.
void gemm_bf16_in_tiles(const Product& x);

}  // namespace keel::kernels::internal
