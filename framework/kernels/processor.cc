#include <keel/framework/kernels/processor.h>

namespace keel::kernels {
namespace {

bool is_intel() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_is("intel") != 0;
#else
  return false;
#endif
}

}  // namespace

// A request into the L1 cache of Intel's processors holds one of 10 to 16 line fill buffers until
// the line comes from memory, which the loads and stores of the rows at hand need too; the L2 cache
// has 32 to 48 requests of its own under way. AMD's L1 caches keep as many as the memory can take.
const bool kAsksIntoL2 = is_intel();

// Intel's follow steps of 2 KiB at most, and not into the next page. With what AMD's follow the
// same loops come near the peak.
const bool kMissesLongStrides = is_intel();

bool has_avx512_bf16() {
#if defined(__x86_64__)
  static const bool kHas = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512bf16") != 0;
  }();
  return kHas;
#else
  return false;
#endif
}

}  // namespace keel::kernels
