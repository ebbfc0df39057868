// Tiles of a bfloat16 product in vector registers, from packed and from unpacked rows of b.
// Included by the two sources of gemm_bf16_vectors.h only.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include <keel/framework/kernels/gemm/bf16_pairs.h>

namespace keel::kernels::internal {
inline namespace KEEL_BF16_NAMESPACE {
namespace bf16 {

// Pairs are stored in arrays of float: they have the same size, and Tile has float pointers.
constexpr int64_t kBlockRows = 128;     // rows of c whose part of a, packed, stays in the L2 cache
constexpr int64_t kBlockPairs = 512;    // pairs per slice; the next slice adds to c
constexpr int64_t kPanel = 2 * kWidth;  // columns of b that are stored together
constexpr int64_t kGroup = 4 * kPanel;  // columns of b that are packed at once
constexpr int64_t kRowStep = kBlockPairs + kWidth;    // stride of packed rows of a
constexpr int64_t kColumnStep = kBlockRows + kWidth;  // stride of packed columns of a transposed a
constexpr int64_t kAhead = 8;                         // rows prefetched before they are packed
constexpr int64_t kLongTile = 32;  // pairs for which a tile prefetches the memory it writes
constexpr int64_t kWideRows = kMostRows / 6;  // rows of a tile that is kGroup wide
constexpr int64_t kFewElements = 1 << 15;     // elements of b per packing task

// The strides are compile-time constants, so one register holds the addresses of all rows.
template <int kRows, int kWide, bool kTransposed>
void compute_tile(const Tile& tile) {
  const Tile t = tile;
  const int fetched = t.k >= kLongTile ? kRows : 0;
  for (int i = 0; i < fetched; ++i) {
    __builtin_prefetch(t.c + i * t.ldc, 1);
    if (kWide > 1) __builtin_prefetch(t.c + i * t.ldc + kWidth, 1);
  }
  Sums<kRows, kWide> sums;
  sums.begin(t);
  const float *a = t.a, *b = t.b;
  for (int64_t p = 0; p < t.k; ++p) {
    Pairs y[kWide];
#pragma GCC unroll 16
    for (int v = 0; v < kWide; ++v) y[v] = load_pairs(b + v * kWidth);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Pairs x = broadcast_pair(a + i * (kTransposed ? 1 : kRowStep));
#pragma GCC unroll 16
      for (int v = 0; v < kWide; ++v) sums.of[i][v] = multiply_add(x, y[v], sums.of[i][v]);
    }
    a += kTransposed ? kColumnStep : 1;
    b += kWide * kWidth;
  }
  sums.end(t);
}

template <int kWide, bool kTransposed, size_t... kRows>
constexpr auto tiles_of(std::index_sequence<kRows...>) {
  return std::array<TileFunction, sizeof...(kRows)>{
      &compute_tile<static_cast<int>(kRows) + 1, kWide, kTransposed>...};
}
template <int kWide, bool kTransposed>
TileFunction tile_function(int64_t rows) {
  static constexpr auto kTiles =
      tiles_of<kWide, kTransposed>(std::make_index_sequence<kMostRows>{});
  return kTiles[static_cast<size_t>(rows - 1)];
}
inline TileFunction tile_function(int64_t rows, int64_t wide, bool transposed) {
  if (wide == 1) return transposed ? tile_function<1, true>(rows) : tile_function<1, false>(rows);
  return transposed ? tile_function<2, true>(rows) : tile_function<2, false>(rows);
}

// Computes a tile from t.k rows of b that are not packed. Used if c has so few rows that packing b
// would take longer than the products.
template <int kRows, int kWide, bool kTransposed>
void compute_unpacked_tile(const Tile& tile) {
  const Tile t = tile;
  Sums<kRows, kWide> sums;
  sums.begin(t);
  const float *a = t.a, *b = t.b;
  const auto add = [&](const auto& second_row) {
#pragma GCC unroll 16
    for (int v = 0; v < kWide; ++v) {
      __builtin_prefetch(b + kAhead * t.ldb + v * kWidth);
      __builtin_prefetch(b + (kAhead + 1) * t.ldb + v * kWidth);
      const Pairs y = interleaved(load(b + v * kWidth), second_row(v));
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const Pairs x = broadcast_pair(a + i * (kTransposed ? 1 : kRowStep));
        sums.of[i][v] = multiply_add(x, y, sums.of[i][v]);
      }
    }
  };
  for (int64_t p = 0; p + 2 <= t.k; p += 2, b += 2 * t.ldb) {
    add([&](int v) { return load(b + t.ldb + v * kWidth); });
    a += kTransposed ? kColumnStep : 1;
  }
  if (t.k % 2 != 0) add([](int) { return Vector{}; });
  sums.end(t);
}
template <int kWide, bool kTransposed, size_t... kRows>
TileFunction unpacked_tile_function(int64_t rows, std::index_sequence<kRows...>) {
  static constexpr std::array<TileFunction, sizeof...(kRows)> kTiles = {
      &compute_unpacked_tile<static_cast<int>(kRows) + 1, kWide, kTransposed>...};
  return kTiles[static_cast<size_t>(rows - 1)];
}
template <bool kTransposed>
TileFunction unpacked_tile_function(int64_t rows, bool wide) {
  constexpr std::make_index_sequence<kWideRows> kFew;
  constexpr std::make_index_sequence<kMostRows> kMany;
  return wide ? unpacked_tile_function<kGroup / kWidth, kTransposed>(rows, kFew)
              : unpacked_tile_function<2, kTransposed>(rows, kMany);
}

}  // namespace bf16
}  // namespace KEEL_BF16_NAMESPACE
}  // namespace keel::kernels::internal
