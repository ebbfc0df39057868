// round_stochastically(): adds random bits below the last bit that is kept, then truncates.
#include <algorithm>
#include <cstring>

#include <keel/framework/kernels/half.h>
#include <keel/framework/kernels/half_parts.h>

namespace keel::kernels {
namespace {

constexpr int64_t kLanes = 16;
typedef uint32_t Bits __attribute__((vector_size(64)));
typedef int32_t Whole __attribute__((vector_size(64)));
typedef uint16_t HalfBits __attribute__((vector_size(32)));

constexpr uint32_t kInfinity = 0x7F800000U;

// Returns random words from a hash with two rounds of multiplication (constants from C. Wellons'
// search for low-bias hashes); the second half of the key is added between them.
inline Bits random_words(Bits counters, uint32_t low, uint32_t high) {
  Bits x = low + counters * 0x9E3779B9U;
  x = (x ^ (x >> 16U)) * 0x7FEB352DU;
  x = ((x ^ (x >> 15U)) + high) * 0x846CA68BU;
  return x ^ (x >> 16U);
}

inline Bits smaller(Bits a, uint32_t b) { return a < b ? a : Bits{} + b; }

#if defined(__AVX512F__)
inline bool any_above(Bits bits, uint32_t most) {
  return _mm512_cmpgt_epu32_mask(std::bit_cast<__m512i>(bits),
                                 _mm512_set1_epi32(static_cast<int>(most))) != 0;
}
#endif

inline HalfBits narrowed(Bits bits) {
#if defined(__AVX512F__)
  return std::bit_cast<HalfBits>(_mm512_cvtepi32_epi16(std::bit_cast<__m512i>(bits)));
#else
  HalfBits out;
  for (int64_t i = 0; i < kLanes; ++i) out[i] = static_cast<uint16_t>(bits[i]);
  return out;
#endif
}

// `random` has 16 bits.
inline HalfBits rounded(Bits bits, Bits random, BFloat16) {
  const Bits magnitude = bits & 0x7FFFFFFFU;
#if defined(__AVX512F__)
  // Values that could round to infinity, infinities and NaN are rare; without them no checks are
  // needed.
  if (!any_above(magnitude, 0x7F7EFFFFU)) [[likely]]
    return narrowed((bits + random) >> 16U);
#endif
  const Bits finite = smaller((magnitude + random) >> 16U, 0x7F7FU);
  const Bits quiet = std::bit_cast<Bits>(magnitude > kInfinity) & 0x40U;
  const Bits kept = magnitude < kInfinity ? finite : magnitude >> 16U | quiet;
  return narrowed(kept | (bits >> 16U & 0x8000U));
}

#if defined(__AVX512F__)
inline __m256i cut_off_halves(Bits floats) {
  return _mm512_cvtps_ph(std::bit_cast<__m512>(floats), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
#endif

// Returns the Float16 next to a magnitude in the direction of 0.
inline Bits cut_off(Bits magnitude) {
#if defined(__AVX512F__)
  return std::bit_cast<Bits>(_mm512_cvtepu16_epi32(cut_off_halves(magnitude)));
#else
  constexpr uint32_t kSmallestNormal = 113U << 23U;  // 2^-14
  const FloatPart steps = std::bit_cast<FloatPart>(smaller(magnitude, kSmallestNormal)) * 0x1p24F;
  const Bits small = std::bit_cast<Bits>(__builtin_convertvector(steps, Whole));
  const Bits normal = smaller((magnitude - (112U << 23U)) >> 13U, 0x7BFFU);
  const Bits finite = magnitude < kSmallestNormal ? small : normal;
  const Bits quiet = std::bit_cast<Bits>(magnitude > kInfinity) & 0x200U;
  return magnitude < kInfinity ? finite : 0x7C00U | quiet;
#endif
}

// Numbers below 2^-14 are multiples of 2^-24; larger ones drop the low 13 bits of their fraction.
inline HalfBits rounded(Bits bits, Bits random, Float16) {
  constexpr uint32_t kSmallestNormal = 113U << 23U;
  constexpr uint32_t kLargestFloat = kInfinity - 1;
  const Bits magnitude = bits & 0x7FFFFFFFU;
  const Bits below = random >> 3U;
#if defined(__AVX512F__)
  constexpr uint32_t kLargest = 0x477FE000U;  // 65504
  if (!any_above(magnitude - kSmallestNormal, kLargest - 1 - kSmallestNormal)) [[likely]] {
    return std::bit_cast<HalfBits>(cut_off_halves(bits + below));
  }
#endif
  const FloatPart part = __builtin_convertvector(std::bit_cast<Whole>(below), FloatPart);
  const Bits small = std::bit_cast<Bits>(std::bit_cast<FloatPart>(magnitude) + part * 0x1p-37F);
  const Bits normal = smaller(magnitude + below, kLargestFloat);
  const Bits raised = magnitude < kSmallestNormal ? small : normal;
  return narrowed(cut_off(magnitude < kInfinity ? raised : magnitude) | (bits >> 16U & 0x8000U));
}

template <class Half>
inline void round_part(const float* from, int64_t n, Bits random, Half* to) {
  Bits bits = {};
  HalfBits out;
  // The size is a compile-time constant for a full part, so memcpy becomes a register move.
  const auto in_and_out = [&](int64_t count) {
    std::memcpy(&bits, from, count * sizeof(float));
    out = rounded(bits, random, Half());
    std::memcpy(static_cast<void*>(to), &out, count * sizeof(Half));
  };
  n == kLanes ? in_and_out(kLanes) : in_and_out(n);
}

// One random word has the bits for two elements, 16 positions apart.
template <class Half>
void round_row(const float* from, int64_t n, uint64_t key, Half* to) {
  const auto low = static_cast<uint32_t>(key);
  const auto high = static_cast<uint32_t>(key >> 32U);
  Bits counters = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  for (int64_t i = 0; i < n; i += 2 * kLanes, counters += kLanes) {
    const Bits words = random_words(counters, low, high);
    round_part(from + i, std::min(n - i, kLanes), words >> 16U, to + i);
    const int64_t rest = n - i - kLanes;
    if (rest > 0) {
      round_part(from + i + kLanes, std::min(rest, kLanes), words & 0xFFFFU, to + i + kLanes);
    }
  }
}

}  // namespace

void round_stochastically(const float* from, int64_t n, uint64_t key, BFloat16* to) {
  round_row(from, n, key, to);
}
void round_stochastically(const float* from, int64_t n, uint64_t key, Float16* to) {
  round_row(from, n, key, to);
}

}  // namespace keel::kernels
