// Conversion of 8-bit and 16-bit numbers to floats, one by one (to_float) or 16 at a time
// (load_part).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include <keel/framework/kernels/half.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

// -Wpsabi warns about the calling convention of vectors wider than the target's registers. Every
// function that passes such vectors is inline, so the convention does not matter.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace keel::kernels {

typedef float FloatPart __attribute__((vector_size(64)));  // 16 floats

// Converts one number to float. The conversion is exact.
inline float to_float(float value) { return value; }
inline float to_float(uint8_t value) { return static_cast<float>(value); }
inline float to_float(int8_t value) { return static_cast<float>(value); }
inline float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16U);
}
// Fraction and exponent are shifted to their positions in a float. The multiplication corrects the
// exponent bias and also normalizes subnormal numbers.
inline float to_float(Float16 value) {
  constexpr uint32_t kInfinity = 0x7C00U << 13U;
  const uint32_t magnitude = (value.bits & 0x7FFFU) << 13U;
  const auto scaled = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
  const uint32_t special = magnitude >= kInfinity ? 0x7F800000U : 0U;
  return std::bit_cast<float>(scaled | special |
                              static_cast<uint32_t>(value.bits & 0x8000U) << 16U);
}

// Loads from[0] ... from[15] as floats.
inline FloatPart load_part(const float* from) {
  FloatPart out;
  std::memcpy(&out, from, sizeof(out));
  return out;
}
#if defined(__AVX512F__)
// Intrinsics, because GCC 12 compiles the generic loop below to two half registers that it then
// joins.
inline FloatPart load_part(const BFloat16* from) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return std::bit_cast<FloatPart>(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
inline FloatPart load_part(const Float16* from) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return std::bit_cast<FloatPart>(_mm512_cvtph_ps(bits));
}
inline FloatPart load_part(const uint8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return std::bit_cast<FloatPart>(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes)));
}
inline FloatPart load_part(const int8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return std::bit_cast<FloatPart>(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)));
}
#else
template <class Number>
inline FloatPart load_part(const Number* from) {
  FloatPart out;
  for (int i = 0; i < 16; ++i) out[i] = to_float(from[i]);
  return out;
}
#endif

}  // namespace keel::kernels
