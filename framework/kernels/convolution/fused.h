// fused_multiply_add for float and double, which compilers vectorize.
#pragma once

#include <type_traits>

namespace keel::kernels {

// Returns x * y + z, rounded once. Without a fused instruction (x86-64 below x86-64-v3) it rounds
// twice, and sums have different bits than on other machines.
template <class T>
[[gnu::always_inline]] inline T fused_multiply_add(T x, T y, T z) {
#if defined(__FMA__) || defined(__aarch64__)
  if constexpr (std::is_same_v<T, float>) {
    return __builtin_fmaf(x, y, z);
  } else {
    return __builtin_fma(x, y, z);
  }
#else
  return x * y + z;
#endif
}

}  // namespace keel::kernels
