// Compiled for AVX512-BF16 regardless of the target processor (framework/CMakeLists.txt).
#include <keel/framework/kernels/gemm/gemm_dispatch.h>

#if KEEL_AVX512

#include <keel/framework/kernels/gemm/gemm_bf16_vectors.h>

namespace keel::kernels::internal {

void gemm_bf16_avx512(const Product& x) { bf16::multiply_in_vectors(x); }

}  // namespace keel::kernels::internal

#endif
