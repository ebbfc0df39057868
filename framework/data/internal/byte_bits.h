// Finds a byte among 64 bytes with SIMD instructions. Private to framework/data.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX512BW__) || defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#endif

namespace keel::data {

// Returns a mask whose bit i is set if p[i] == c, for 64 bytes.
inline uint64_t bits_of(const char* p, char c) {
#if defined(__AVX512BW__)
  return _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(p), _mm512_set1_epi8(c));
#elif defined(__AVX2__)
  uint64_t bits = 0;
  for (int i = 0; i < 64; i += 32) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + i));
    const __m256i equal = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(c));
    bits |= static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(equal))) << i;
  }
  return bits;
#elif defined(__SSE2__)
  uint64_t bits = 0;
  for (int i = 0; i < 64; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i));
    const __m128i equal = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(c));
    bits |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(equal))) << i;
  }
  return bits;
#else
  uint64_t bits = 0;
  for (int i = 0; i < 64; ++i) bits |= static_cast<uint64_t>(p[i] == c) << i;
  return bits;
#endif
}

}  // namespace keel::data
