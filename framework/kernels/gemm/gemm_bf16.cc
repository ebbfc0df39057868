#include <keel/framework/kernels/gemm/gemm_bf16.h>

#include <keel/framework/kernels/gemm/gemm_dispatch.h>
#include <keel/framework/kernels/processor.h>

namespace keel::kernels {

void internal::gemm_bf16_in_vectors(const Product& x) {
#if KEEL_AVX512
  if (has_avx512_bf16()) return gemm_bf16_avx512(x);
#endif
  gemm_bf16_portable(x);
}

void gemm_bf16(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k,
               bool transpose_a, bool transpose_b, const GemmEpilogue& epilogue,
               [[maybe_unused]] MatmulPrecision precision) {
  if (m == 0 || n == 0) return;
  const internal::Product x = {a, b, c, m, n, k, transpose_a, transpose_b, epilogue};
#if KEEL_AVX512
  if (precision == MatmulPrecision::kHigh && n > 1 && internal::may_use_tiles()) {
    return internal::gemm_bf16_in_tiles(x);
  }
#endif
  internal::gemm_bf16_in_vectors(x);
}

}  // namespace keel::kernels
