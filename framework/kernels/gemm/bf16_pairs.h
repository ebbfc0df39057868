// Vectors of pairs of bfloat16, and the products of pairs that instruction sets have for them.
//
// A pair is 32 bits, with its first element in the lower half. Sources that are compiled for
// AVX512-BF16 use its instructions; other sources compute the same bits without them. The
// instructions read subnormal numbers as zero and return zero for them, so the caller must hold a
// FlushSubnormals (flush_subnormals.h). The product of two bfloat16 is exact in float: only sums
// round.
//
// One program contains sources of both kinds, so each kind has its own namespace.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include <keel/framework/kernels/gemm/gemm_tile.h>

#if defined(__AVX512BF16__)
#define KEEL_BF16_NAMESPACE with_avx512_bf16
#else
#define KEEL_BF16_NAMESPACE without_avx512_bf16
#endif

namespace keel::kernels::internal {
inline namespace KEEL_BF16_NAMESPACE {

// One register of pairs.
typedef uint32_t Pairs __attribute__((vector_size(sizeof(Vector))));

// Arrays of float hold pairs too, because both have 32 bits.
inline Pairs load_pairs(const float* from) { return reinterpret_cast<Pairs>(load(from)); }
inline void store_pairs(float* to, Pairs v) { store(to, reinterpret_cast<Vector>(v)); }
// Returns a register with the pair at `from` in every lane.
inline Pairs broadcast_pair(const float* from) {
  uint32_t pair;
  std::memcpy(&pair, from, sizeof(pair));
  Pairs out = pair + Pairs{};
#if defined(__AVX512BF16__) && defined(__clang__) && __clang_major__ < 17
  asm("" : "+v"(out));  // Clang 16 crashes if it folds a broadcast into a bfloat16 operand
#endif
  return out;
}

// Loads the first `count` elements of a vector; the others are zero.
inline Vector load_some(const float* from, int64_t count) {
  if (count >= kWidth) return load(from);
  Vector out = {};
  if (count > 0) std::memcpy(&out, from, static_cast<size_t>(count) * sizeof(float));
  return out;
}

// Rounds to the nearest bfloat16 (ties to even), stored in the upper half of each lane.
inline Pairs rounded(Vector x) {
  const Pairs bits = reinterpret_cast<Pairs>(x);
  const Pairs nearest = bits + 0x7FFFU + ((bits >> 16U) & 1U);
  const Pairs quiet = bits | 0x400000U;  // rounding could turn NaN into infinity
  const Pairs sign = bits & 0x80000000U;
  const Pairs number = (bits & 0x7F800000U) != 0 ? nearest : sign;  // subnormal numbers become zero
  return (x == x ? number : quiet) & 0xFFFF0000U;
}

// Returns pairs whose lane i holds first[i] and second[i], rounded.
inline Pairs interleaved(Vector first, Vector second) {
#if defined(__AVX512BF16__)
  static constexpr auto kOrder = []<uint16_t... kWord>(std::integer_sequence<uint16_t, kWord...>) {
    struct alignas(64) Order {
      uint16_t word[32];
    };
    return Order{{(kWord / 2 + kWord % 2 * 16)...}};
  }(std::make_integer_sequence<uint16_t, 32>{});
  const __m512i halves = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
  return reinterpret_cast<Pairs>(_mm512_permutexvar_epi16(_mm512_load_si512(kOrder.word), halves));
#else
  return rounded(second) | rounded(first) >> 16U;
#endif
}

template <size_t... kLane>
Pairs adjacent(Vector first, Vector second, std::index_sequence<kLane...>) {
  return interleaved(__builtin_shufflevector(first, second, (2 * kLane)...),
                     __builtin_shufflevector(first, second, (2 * kLane + 1)...));
}

// Returns the pairs of neighbors in first[0], first[1], ..., second[0], ..., rounded.
inline Pairs adjacent(Vector first, Vector second) {
#if defined(__AVX512BF16__)
  return reinterpret_cast<Pairs>(_mm512_cvtne2ps_pbh(second, first));
#else
  return adjacent(first, second, std::make_index_sequence<kWidth>{});
#endif
}

// Adds the product of the second elements of each pair to z, then that of the first elements, which
// is the order of the instruction.
inline Vector multiply_add(Pairs x, Pairs y, Vector z) {
#if defined(__AVX512BF16__)
  return _mm512_dpbf16_ps(z, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(y));
#else
  const auto second = [](Pairs v) { return reinterpret_cast<Vector>(v & 0xFFFF0000U); };
  const auto first = [](Pairs v) { return reinterpret_cast<Vector>(v << 16U); };
  return internal::multiply_add(first(x), first(y),
                                internal::multiply_add(second(x), second(y), z));
#endif
}

}  // namespace KEEL_BF16_NAMESPACE
}  // namespace keel::kernels::internal
