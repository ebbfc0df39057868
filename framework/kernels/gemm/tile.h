// The size and the arguments of one tile of a matrix product.
#pragma once

#include <cstdint>

#include <keel/framework/kernels/vector_register.h>

namespace keel::kernels::internal {

#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int kMostRows = 14;  // a tile two registers wide has 28 sums, 4 registers are left
#else
inline constexpr int kMostRows = 6;
#endif

// The stride between packed columns of op(a): the rows of a tile, rounded up to whole registers.
inline constexpr int64_t kPackedRows = (kMostRows + kWidth - 1) / kWidth * kWidth;

// The arguments of a function that computes one tile.
struct Tile {
  const float* a = nullptr;  // [rows, k], or [k, rows] if transposed; rows are lda apart
  const float* b = nullptr;  // [k, columns]; rows are ldb apart
  float* c = nullptr;        // [rows, columns]; rows are ldc apart
  int64_t lda = 0, ldb = 0, ldc = 0, k = 0;
  float* packed_a = nullptr;    // [k, kPackedRows]; written by functions that pack a
  float* packed_b = nullptr;    // [k, columns]; written by functions that pack b
  bool accumulate = false;      // c += instead of c =
  const float* bias = nullptr;  // bias of the columns, added to the sums; null: none
  bool relu = false;            // applied after the bias
  // Memory that later tiles need, prefetched during the product; null: none. next_c: rows that will
  // be written, next_step apart; if it is null, nothing is prefetched. ahead: memory that will be
  // read.
  const float* next_c = nullptr;
  int64_t next_step = 0;
  const float* ahead[2] = {};
};
// A function that computes one tile of a fixed size.
using TileFunction = void (*)(const Tile&);

}  // namespace keel::kernels::internal
