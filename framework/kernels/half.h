// 16-bit floating-point types for storing the rows of a table. All arithmetic on them is done in
// float.
#pragma once

#include <cstdint>

namespace keel::kernels {

struct BFloat16 {  // bfloat16: 8 exponent bits, 7 fraction bits; the upper half of a float
  uint16_t bits = 0;
};
struct Float16 {  // IEEE 754 binary16: 5 exponent bits, 10 fraction bits; at most 65504
  uint16_t bits = 0;
};

// The type in which the rows of a table are stored.
enum class StorageType { kFloat32, kBFloat16, kFloat16 };

// Calls fn(T{}) with T = float, BFloat16 or Float16, and returns its result.
template <class Fn>
decltype(auto) visit_storage(StorageType type, const Fn& fn) {
  switch (type) {
    case StorageType::kBFloat16:
      return fn(BFloat16{});
    case StorageType::kFloat16:
      return fn(Float16{});
    case StorageType::kFloat32:
      break;
  }
  return fn(float{});
}

// Converts n values to float. The conversion is exact.
void to_floats(const BFloat16* from, int64_t n, float* to);
void to_floats(const Float16* from, int64_t n, float* to);

// Both rounding modes keep infinities and NaN. Finite values stay finite: a value beyond the
// largest finite number of the format is clamped to that number.
//
// Rounds n values to the nearest representable value, ties to even.
void round_to_nearest(const float* from, int64_t n, BFloat16* to);
void round_to_nearest(const float* from, int64_t n, Float16* to);
// Rounds n values to the nearest Float16, ties to even, as arithmetic in that format does: a value
// from 65520 on becomes infinite, and NaN stays NaN. `from` may be `to`.
void round_as_float16(const float* from, int64_t n, float* to);
// Rounds n values stochastically to one of the two adjacent representable values. The nearer value
// is the likelier, so the mean over keys is the exact number (within 2^-13 of the spacing for a
// Float16 below 2^-14). A representable value is not changed. Element i of the result depends only
// on from[i], `key` and i.
void round_stochastically(const float* from, int64_t n, uint64_t key, BFloat16* to);
void round_stochastically(const float* from, int64_t n, uint64_t key, Float16* to);

// Returns a key derived from two (the SplitMix64 hash). Changing either argument gives an unrelated
// key.
inline uint64_t mixed_key(uint64_t key, uint64_t with) {
  uint64_t x = (key ^ with * 0x9E3779B97F4A7C15U) + 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

}  // namespace keel::kernels
