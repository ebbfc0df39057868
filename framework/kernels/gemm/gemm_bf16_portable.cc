#include <keel/framework/kernels/gemm/gemm_bf16_vectors.h>
#include <keel/framework/kernels/gemm/gemm_dispatch.h>

namespace keel::kernels::internal {

void gemm_bf16_portable(const Product& x) { bf16::multiply_in_vectors(x); }

}  // namespace keel::kernels::internal
