// Vector: one register of floats of the target machine, and the operations that matrix products
// need.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__AVX512F__) || defined(__FMA__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace keel::kernels::internal {

#if defined(__AVX512F__)
inline constexpr int kWidth = 16;  // floats per register
#elif defined(__AVX__)
inline constexpr int kWidth = 8;
#else
inline constexpr int kWidth = 4;
#endif

// One register of floats.
typedef float Vector __attribute__((vector_size(kWidth * sizeof(float))));

// Loads kWidth floats; `from` need not be aligned.
inline Vector load(const float* from) {
  Vector out;
  std::memcpy(&out, from, sizeof(out));
  return out;
}
// Stores kWidth floats; `to` need not be aligned.
inline void store(float* to, Vector v) { std::memcpy(to, &v, sizeof(v)); }
// Returns a register with x in every lane. x - 0 keeps the sign of a zero, unlike x + 0.
inline Vector broadcast(float x) { return x - Vector{}; }

// Returns x * y + z, rounded once. Without a fused instruction (x86-64 below x86-64-v3) it rounds
// twice, and products have different bits than on other machines.
inline Vector multiply_add(Vector x, Vector y, Vector z) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(x, y, z);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(x, y, z);
#elif defined(__aarch64__)
  return vfmaq_f32(z, x, y);
#else
  return x * y + z;
#endif
}

// One step of transposing kWidth vectors: exchanges blocks of kStep lanes between x and y.
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

// Transposes kWidth rows and columns: to[p, j] = from[j, p]. Rows are `from_step` and `to_step`
// floats apart.
inline void transpose_square(const float* from, int64_t from_step, float* to, int64_t to_step) {
  Vector rows[kWidth];
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) rows[i] = load(from + i * from_step);
  exchange_blocks<1>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) store(to + i * to_step, rows[i]);
}

// Returns the dot product of x and y over k elements. It uses 64 partial sums regardless of the
// register width, so the bits are the same on all machines.
inline float dot(const float* x, const float* y, int64_t k) {
  constexpr int kSums = 64, kRow = 16;  // a row is as wide as the widest register of any target
  Vector sums[kSums / kWidth] = {};
  int64_t p = 0;
  for (; p + kSums <= k; p += kSums) {
#pragma GCC unroll 16
    for (int s = 0; s < kSums / kWidth; ++s) {
      sums[s] = multiply_add(load(x + p + s * kWidth), load(y + p + s * kWidth), sums[s]);
    }
  }
  for (; p + kRow <= k; p += kRow) {
#pragma GCC unroll 4
    for (int s = 0; s < kRow / kWidth; ++s) {
      sums[s] = multiply_add(load(x + p + s * kWidth), load(y + p + s * kWidth), sums[s]);
    }
  }
  float row[kRow];
#pragma GCC unroll 4
  for (int s = 0; s < kRow / kWidth; ++s) {
    constexpr int kNext = kRow / kWidth;
    store(row + s * kWidth,
          (sums[s] + sums[s + kNext]) + (sums[s + 2 * kNext] + sums[s + 3 * kNext]));
  }
  float sum = 0;
  for (const float part : row) sum += part;
  for (; p < k; ++p) sum += x[p] * y[p];
  return sum;
}

}  // namespace keel::kernels::internal
