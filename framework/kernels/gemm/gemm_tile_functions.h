// Tables of the functions that compute tiles, by tile size.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include <keel/framework/kernels/gemm/gemm_tile.h>

namespace keel::kernels::internal {

template <int kWide, bool kTransposed, bool kPacksA = false, bool kPacksB = false, size_t... kRows>
constexpr auto tiles_of(std::index_sequence<kRows...>) {
  return std::array<TileFunction, sizeof...(kRows)>{
      &compute_tile<static_cast<int>(kRows) + 1, kWide, kTransposed, kPacksA, kPacksB>...};
}

// The maximum number of rows of a tile: tiles with more registers per row have fewer rows.
template <int kWide>
inline constexpr int kRowsOf = kWide <= 2 ? kMostRows : 2 * kMostRows / kWide;
inline constexpr int kWidest = kMostRows >= 8 ? 8 : 4;

template <int kWide, bool kTransposed>
TileFunction tile_function(int64_t rows) {
  static constexpr auto kTiles =
      tiles_of<kWide, kTransposed>(std::make_index_sequence<kRowsOf<kWide>>{});
  return kTiles[static_cast<size_t>(rows - 1)];
}

// Returns the function for a tile of `rows` rows and `wide` registers per row. Requires
// 1 <= rows <= kRowsOf<wide>; wide is 1, 2, 4 or kWidest.
inline TileFunction tile_function(int64_t rows, int64_t wide, bool transposed) {
  switch (wide) {
    case 1:
      return transposed ? tile_function<1, true>(rows) : tile_function<1, false>(rows);
    case 2:
      return transposed ? tile_function<2, true>(rows) : tile_function<2, false>(rows);
    case 4:
      return transposed ? tile_function<4, true>(rows) : tile_function<4, false>(rows);
    default:
      return transposed ? tile_function<kWidest, true>(rows) : tile_function<kWidest, false>(rows);
  }
}

// Returns the function for a tile two registers wide that packs a (transposed), b, or both. If it
// packs a, kPackedRows floats of each column must be readable.
template <bool kTransposed, bool kPacksA, bool kPacksB>
TileFunction packing_tile_function(int64_t rows) {
  static constexpr auto kTiles =
      tiles_of<2, kTransposed, kPacksA, kPacksB>(std::make_index_sequence<kMostRows>{});
  return kTiles[static_cast<size_t>(rows - 1)];
}
inline TileFunction packing_tile_function(int64_t rows, bool transposed, bool packs_a,
                                          bool packs_b) {
  if (!transposed) return packing_tile_function<false, false, true>(rows);
  if (!packs_a) return packing_tile_function<true, false, true>(rows);
  return packs_b ? packing_tile_function<true, true, true>(rows)
                 : packing_tile_function<true, true, false>(rows);
}

}  // namespace keel::kernels::internal
