#include <keel/framework/kernels/gemm/amx_tiles.h>

#if KEEL_AVX512

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace keel::kernels::internal {
namespace {

bool processor_has_tiles() {
  constexpr unsigned kBfloat16 = 1U << 22U, kTiles = 1U << 24U;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kBfloat16) != 0 && (d & kTiles) != 0;
}

// Linux reserves memory for the tiles of a thread only after the process has requested it.
bool request_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // <asm/prctl.h> of newer systems
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool may_use_tiles() {
  static const bool kMay = processor_has_tiles() && request_tiles();
  return kMay;
}

}  // namespace keel::kernels::internal

#endif
