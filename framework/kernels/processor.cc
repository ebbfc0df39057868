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

// On Intel processors a prefetch into the L1 cache occupies one of 10 to 16 line fill buffers until
// the line arrives from memory. The loads and stores of the current rows need the same buffers. The
// L2 cache has 32 to 48 requests of its own in flight. AMD's L1 caches keep as many requests in
// flight as the memory can serve.
const bool kPrefetchesIntoL2 = is_intel();

// Intel's hardware prefetchers follow strides of at most 2 KiB and do not cross a page. AMD's
// prefetchers follow longer strides, so the same loops come near peak speed there.
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
