// Float32 matrices rounded to bfloat16 and laid out for tile registers (amx_tiles.h).
//
// A tile of the left factor has a row for each row of c and pairs of neighbours along the sums; one
// of the right factor has a row for each pair and a lane for each column of c. So one is the other
// with its 32-bit lanes transposed, and memory of either order serves both.
#pragma once

#include "framework/kernels/amx_tiles.h"

#if KEEL_AMX

#include <algorithm>
#include <cstdint>

#include "framework/kernels/bf16_pairs.h"

namespace keel::kernels::internal {

// A part of a matrix, its rows `step` apart.
struct Part {
  const float* at;
  int64_t step, rows, columns;

  Part from(int64_t row, int64_t column) const {
    return {at + row * step + column, step, rows - row, columns - column};
  }
};

inline __mmask16 mask_of(int64_t lanes) {
  return static_cast<__mmask16>((1U << std::clamp<int64_t>(lanes, 0, kTileLanes)) - 1);
}

inline void store_row(uint32_t* to, Pairs row) { std::memcpy(to, &row, sizeof(row)); }

// The pairs of the first `count` neighbours, zeros after them.
inline Pairs some_adjacent(const float* from, int64_t count) {
  return adjacent(_mm512_maskz_loadu_ps(mask_of(count), from),
                  _mm512_maskz_loadu_ps(mask_of(count - kTileLanes), from + kTileLanes));
}

// A tile of row(0), row(1), ..., or of what lies across them.
template <bool kTransposed, class Row>
void store_tile(uint32_t* to, const Row& row) {
  Vector rows[kTileRows];
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows; ++i) rows[i] = reinterpret_cast<Vector>(row(i));
  if constexpr (kTransposed) exchange_blocks<1>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows; ++i) {
    store_row(to + i * kTileLanes, reinterpret_cast<Pairs>(rows[i]));
  }
}

// Row i: the pairs of neighbours in row i of the part. Zeros after its end.
template <bool kTransposed>
void pack_adjacent(const Part& part, uint32_t* to) {
  const float* const from = part.at;
  const int64_t step = part.step;
  if (part.rows >= kTileRows && part.columns >= kTileStep) {
    return store_tile<kTransposed>(to, [=](int i) {
      return adjacent(load(from + i * step), load(from + i * step + kTileLanes));
    });
  }
  store_tile<kTransposed>(
      to, [&](int i) { return some_adjacent(from + i * step, i < part.rows ? part.columns : 0); });
}

// Row i: lane by lane, the pairs of rows 2 i and 2 i + 1 of the part. Zeros after its end.
template <bool kTransposed>
void pack_interleaved(const Part& part, uint32_t* to) {
  const float* const from = part.at;
  const int64_t step = part.step;
  if (part.rows >= kTileStep && part.columns >= kTileLanes) {
    return store_tile<kTransposed>(to, [=](int i) {
      return interleaved(load(from + 2 * i * step), load(from + (2 * i + 1) * step));
    });
  }
  const __mmask16 lanes = mask_of(part.columns);
  store_tile<kTransposed>(to, [=, rows = part.rows](int i) {
    const __mmask16 even = 2 * i < rows ? lanes : 0;
    const __mmask16 odd = 2 * i + 1 < rows ? lanes : 0;
    return interleaved(_mm512_maskz_loadu_ps(even, from + 2 * i * step),
                       _mm512_maskz_loadu_ps(odd, from + (2 * i + 1) * step));
  });
}

}  // namespace keel::kernels::internal

#endif
