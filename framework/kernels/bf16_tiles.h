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

// Row i: the pairs of neighbours in row i of the part. Zeros after its end.
template <bool kIsFull>
void load_adjacent(const Part& part, Pairs (&rows)[kTileRows]) {
  const __mmask16 first = mask_of(part.columns), second = mask_of(part.columns - kTileLanes);
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows; ++i) {
    const float* at = part.at + i * part.step;
    if (kIsFull) {
      rows[i] = adjacent(load(at), load(at + kTileLanes));
    } else if (i < part.rows) {
      rows[i] = adjacent(_mm512_maskz_loadu_ps(first, at),
                         _mm512_maskz_loadu_ps(second, at + kTileLanes));
    } else {
      rows[i] = Pairs{};
    }
  }
}

// Row i: lane by lane, the pairs of rows 2 i and 2 i + 1 of the part. Zeros after its end.
template <bool kIsFull>
void load_interleaved(const Part& part, Pairs (&rows)[kTileRows]) {
  const __mmask16 lanes = mask_of(part.columns);
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows; ++i) {
    const float* at = part.at + 2 * i * part.step;
    if (kIsFull) {
      rows[i] = interleaved(load(at), load(at + part.step));
    } else {
      const __mmask16 even = 2 * i < part.rows ? lanes : 0;
      const __mmask16 odd = 2 * i + 1 < part.rows ? lanes : 0;
      rows[i] =
          interleaved(_mm512_maskz_loadu_ps(even, at), _mm512_maskz_loadu_ps(odd, at + part.step));
    }
  }
}

inline void load_adjacent(const Part& part, Pairs (&rows)[kTileRows]) {
  const bool is_full = part.rows >= kTileRows && part.columns >= kTileStep;
  is_full ? load_adjacent<true>(part, rows) : load_adjacent<false>(part, rows);
}
inline void load_interleaved(const Part& part, Pairs (&rows)[kTileRows]) {
  const bool is_full = part.rows >= kTileStep && part.columns >= kTileLanes;
  is_full ? load_interleaved<true>(part, rows) : load_interleaved<false>(part, rows);
}

inline void store_tile(const Pairs (&rows)[kTileRows], uint32_t* to) {
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows; ++i) store_row(to + i * kTileLanes, rows[i]);
}
inline void store_transposed(const Pairs (&rows)[kTileRows], uint32_t* to) {
  Vector lanes[kTileRows];
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows; ++i) lanes[i] = reinterpret_cast<Vector>(rows[i]);
  exchange_blocks<1>(lanes);
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows; ++i)
    store_row(to + i * kTileLanes, reinterpret_cast<Pairs>(lanes[i]));
}

}  // namespace keel::kernels::internal

#endif
