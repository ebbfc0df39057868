// Vector: one register of floats of the machine that is compiled for, and what products do with it.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__AVX512F__) || defined(__FMA__)
#include <immintrin.h>
#endif

namespace keel::kernels::internal {

#if defined(__AVX512F__)
inline constexpr int kWidth = 16;  // floats of a register
#elif defined(__AVX__)
inline constexpr int kWidth = 8;
#else
inline constexpr int kWidth = 4;
#endif

// One register.
typedef float Vector __attribute__((vector_size(kWidth * sizeof(float))));

inline Vector load(const float* from) {
  Vector out;
  std::memcpy(&out, from, sizeof(out));
  return out;
}
inline void store(float* to, Vector v) { std::memcpy(to, &v, sizeof(v)); }
inline Vector broadcast(float x) { return x - Vector{}; }

// x y + z, rounded once where the machine can.
inline Vector multiply_add(Vector x, Vector y, Vector z) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(x, y, z);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(x, y, z);
#else
  return x * y + z;
#endif
}

// The step of transposing kWidth vectors that exchanges blocks of kStep lanes between x and y.
template <int kStep, size_t... kLane>
void exchange(Vector& x, Vector& y, std::index_sequence<kLane...>) {
  const Vector low =
      __builtin_shufflevector(x, y, ((kLane & kStep) != 0 ? kWidth + kLane - kStep : kLane)...);
  const Vector high =
      __builtin_shufflevector(x, y, ((kLane & kStep) != 0 ? kWidth + kLane : kLane + kStep)...);
  x = low;
  y = high;
}
template <int kStep>
void exchange_blocks(Vector (&rows)[kWidth]) {
  if constexpr (kStep < kWidth) {
#pragma GCC unroll 16
    for (int i = 0; i < kWidth; ++i) {
      if ((i & kStep) == 0) {
        exchange<kStep>(rows[i], rows[i + kStep], std::make_index_sequence<kWidth>{});
      }
    }
    exchange_blocks<2 * kStep>(rows);
  }
}

// to[p, j] = from[j, p] for kWidth rows and columns.
inline void transpose_square(const float* from, int64_t from_step, float* to, int64_t to_step) {
  Vector rows[kWidth];
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) rows[i] = load(from + i * from_step);
  exchange_blocks<1>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) store(to + i * to_step, rows[i]);
}

// x . y, in several sums, fixed by k.
inline float dot(const float* x, const float* y, int64_t k) {
  Vector sums[4] = {};
  int64_t p = 0;
  for (; p + 4 * kWidth <= k; p += 4 * kWidth) {
#pragma GCC unroll 4
    for (int s = 0; s < 4; ++s) {
      sums[s] = multiply_add(load(x + p + s * kWidth), load(y + p + s * kWidth), sums[s]);
    }
  }
  const Vector all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  float sum = 0;
  for (int i = 0; i < kWidth; ++i) sum += all[i];
  for (; p < k; ++p) sum += x[p] * y[p];
  return sum;
}

}  // namespace keel::kernels::internal
