// Compares the 16 slots of one cache line of a KeyIndex with SIMD instructions. Bit i of a result
// describes slot i. The slots must be aligned to 64 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace keel::distribute {

constexpr size_t kSlotsOfLine = 16;
constexpr uint32_t kWholeLine = 0xffff;  // one bit per slot

// Returns the slots whose bits in `mask` equal `value`.
inline uint32_t equal_slots(const uint32_t* slots, uint32_t mask, uint32_t value) {
#if defined(__AVX512F__)
  const __m512i bits =
      _mm512_and_si512(_mm512_load_si512(slots), _mm512_set1_epi32(static_cast<int>(mask)));
  return _mm512_cmpeq_epi32_mask(bits, _mm512_set1_epi32(static_cast<int>(value)));
#elif defined(__AVX2__)
  uint32_t out = 0;
  for (size_t i = 0; i < kSlotsOfLine; i += 8) {
    const __m256i half = _mm256_load_si256(reinterpret_cast<const __m256i*>(slots + i));
    const __m256i bits = _mm256_and_si256(half, _mm256_set1_epi32(static_cast<int>(mask)));
    const __m256i equal = _mm256_cmpeq_epi32(bits, _mm256_set1_epi32(static_cast<int>(value)));
    out |= static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(equal))) << i;
  }
  return out;
#else
  uint32_t out = 0;
  for (size_t i = 0; i < kSlotsOfLine; ++i) {
    out |= static_cast<uint32_t>((slots[i] & mask) == value) << i;
  }
  return out;
#endif
}

// Returns the slots that are 0.
inline uint32_t empty_slots(const uint32_t* slots) { return equal_slots(slots, 0xffffffff, 0); }

}  // namespace keel::distribute
