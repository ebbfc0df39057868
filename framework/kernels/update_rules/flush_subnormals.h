// FlushSubnormals: a scope in which this thread's arithmetic treats subnormal numbers as zero.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace keel::kernels::internal {

// During the lifetime of an object, floating-point operations of this thread read subnormal
// operands as zero and return zero for subnormal results. The bfloat16 instructions always do that.
class FlushSubnormals {
 public:
#if defined(__SSE2__)
  FlushSubnormals() : before_(_mm_getcsr()) {
    _mm_setcsr(before_ | kFlushToZero | kSubnormalsAreZero);
  }
  ~FlushSubnormals() { _mm_setcsr(before_); }
#elif defined(__aarch64__)
  FlushSubnormals() : before_(control()) { set_control(before_ | kFlushToZero); }
  ~FlushSubnormals() { set_control(before_); }
#else
  FlushSubnormals() = default;
#endif
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
#if defined(__SSE2__)
  static constexpr unsigned kFlushToZero = 0x8000, kSubnormalsAreZero = 0x0040;
  const unsigned before_;
#elif defined(__aarch64__)
  static constexpr uint64_t kFlushToZero = uint64_t{1} << 24U;
  static uint64_t control() {
    uint64_t value = 0;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void set_control(uint64_t value) {
    asm volatile("msr fpcr, %0" : : "r"(value) : "memory");
  }
  const uint64_t before_;
#endif
};

}  // namespace keel::kernels::internal
