// 16-bit floats: what rows of a table may be kept as. All arithmetic on them is float's.
#pragma once

#include <cstdint>

namespace keel::kernels {

struct BFloat16 {  // 8 bits of exponent, 7 of fraction: the upper half of a float
  uint16_t bits = 0;
};
struct Float16 {  // 5 bits of exponent, 10 of fraction (IEEE 754 binary16); up to 65504
  uint16_t bits = 0;
};

enum class StorageType { kFloat32, kBFloat16, kFloat16 };

// Calls fn(T{}) with float, BFloat16 or Float16.
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

// Every value there is has its float: exact.
void to_floats(const BFloat16* from, int64_t n, float* to);
void to_floats(const Float16* from, int64_t n, float* to);

// Both ways of rounding leave infinities and NaN what they are, and what is finite so: beyond the
// largest number it becomes that.
//
// The nearest value, of two the even one.
void round_to_nearest(const float* from, int64_t n, BFloat16* to);
void round_to_nearest(const float* from, int64_t n, Float16* to);
// One of the two values beside it, the nearer the likelier, so that the mean over keys is the
// number itself (to 2^-13 of a step for a Float16 below 2^-14). What there is a value for stays.
// Element i depends on from[i], key and i alone.
void round_stochastically(const float* from, int64_t n, uint64_t key, BFloat16* to);
void round_stochastically(const float* from, int64_t n, uint64_t key, Float16* to);

// One key of two: any change of either gives one that has nothing to do with it.
inline uint64_t mixed_key(uint64_t key, uint64_t with) {
  uint64_t x = (key ^ with * 0x9E3779B97F4A7C15U) + 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

}  // namespace keel::kernels
