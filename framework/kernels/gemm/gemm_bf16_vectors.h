// The products of gemm_bf16 (framework/kernels/gemm/gemm_bf16.h) in vector registers. This header
// is included by gemm_bf16_avx512.cc, which is compiled for AVX512-BF16, and by
// gemm_bf16_portable.cc, which is not.
#pragma once

#include <algorithm>
#include <array>

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/gemm/bf16_pairs.h>
#include <keel/framework/kernels/gemm/gemm_args.h>
#include <keel/framework/kernels/scratch.h>
#include <keel/framework/kernels/update_rules/flush_subnormals.h>

namespace keel::kernels::internal {
inline namespace KEEL_BF16_NAMESPACE {
namespace bf16 {

// parallel_for() of tasks that read and return subnormal numbers as zero.
template <class Fn>
void parallel_for_flushing(int64_t count, int64_t grain, const Fn& fn) {
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    const FlushSubnormals flush;
    fn(begin, end);
  });
}

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

// The pairs [from, from + count) of the sums.
struct Slice {
  int64_t from, count;
};

// Packs pairs of two rows each, in memory order; rows have `width` elements. Pairs after the last
// row or column are padded with zeros. place(i) returns the address of pair 0 of column first + i
// and the step to the next pair.
template <class Place>
void pack_rows(const float* x, int64_t width, int64_t rows, Slice slice, int64_t first,
               int64_t columns, const Place& place) {
  for (int64_t p = 0; p < slice.count; ++p) {
    const int64_t row = 2 * (slice.from + p);
    const float* even = x + row * width + first;
    const bool has_odd = row + 1 < rows;
    for (int64_t i = 0; i < columns; i += kWidth) {
      __builtin_prefetch(even + kAhead * width + i);
      __builtin_prefetch(even + (kAhead + 1) * width + i);
      const Vector odd = has_odd ? load_some(even + width + i, columns - i) : Vector{};
      const auto [to, step] = place(i);
      store_pairs(to + p * step, interleaved(load_some(even + i, columns - i), odd));
    }
  }
}

// Returns the pairs [p, p + kWidth) of a row of k elements.
inline Pairs pairs_of_row(const float* row, int64_t p, int64_t k) {
  const int64_t left = k - 2 * p;
  const Vector first = load_some(row + 2 * p, left);
  const Vector second = left > kWidth ? load_some(row + 2 * p + kWidth, left - kWidth) : Vector{};
  return adjacent(first, second);
}

inline int64_t panel_width(int64_t columns) { return columns > kWidth ? kPanel : kWidth; }

// Packs the columns [first, first + columns) of op(b) into consecutive panels.
inline void pack_columns(const Product& x, Slice slice, int64_t first, int64_t columns, float* to) {
  struct Place {
    float* at;
    int64_t step;
  };
  const auto place = [&](int64_t i) {
    const int64_t panel = i / kPanel * kPanel;
    return Place{to + panel * slice.count + (i - panel), panel_width(columns - panel)};
  };
  if (!x.transpose_b) return pack_rows(x.b, x.n, x.k, slice, first, columns, place);
  for (int64_t j = 0; j < columns; j += kWidth) {
    const auto [at, step] = place(j);
    const int64_t count = std::min<int64_t>(kWidth, columns - j);
    for (int64_t p = 0; p < slice.count; p += kWidth) {
      Vector rows[kWidth] = {};
      for (int64_t i = 0; i < count; ++i) {
        const float* row = x.b + (first + j + i) * x.k;
        rows[i] = reinterpret_cast<Vector>(pairs_of_row(row, slice.from + p, x.k));
      }
      exchange_blocks<1>(rows);
      const int64_t some = std::min<int64_t>(kWidth, slice.count - p);
      for (int64_t i = 0; i < some; ++i) store(at + (p + i) * step, rows[i]);
    }
  }
}

// Packs all columns of op(b) into consecutive panels; the last one may be one register wide.
inline void pack_b(const Product& x, Slice slice, float* to) {
  const int64_t grain =
      std::max<int64_t>(1, kFewElements / (kGroup * 2 * std::max<int64_t>(slice.count, 1)));
  parallel_for_flushing(blocks_of(x.n, kGroup), grain, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin * kGroup; j < std::min(x.n, end * kGroup); j += kGroup) {
      pack_columns(x, slice, j, std::min(kGroup, x.n - j), to + j * slice.count);
    }
  });
}

// Rows [row, row + rows) of c.
struct Block {
  const Product& x;
  Slice slice;
  bool ends;  // the sums are complete with this slice
  int64_t row, rows;

  // Requires at most kMostRows rows and b not transposed.
  void compute_unpacked() const {
    const Scratch<float> packed(packed_size());
    pack_a(packed.data());
    parallel_for_flushing(blocks_of(x.n, kGroup), 1, [&](int64_t begin, int64_t end) {
      const int64_t last = std::min(x.n, end * kGroup);
      for (int64_t j = begin * kGroup; j < last;) j += compute_columns(packed.data(), j, last);
    });
  }

  void compute(const float* panels) const {
    const Scratch<float> packed(packed_size());
    pack_a(packed.data());
    for (int64_t j = 0; j < x.n; j += kPanel) {
      compute_panel(packed.data(), panels + j * slice.count, j, std::min(kPanel, x.n - j));
    }
  }

 private:
  int64_t packed_size() const {
    return x.transpose_a ? slice.count * kColumnStep : rows * kRowStep;
  }

  void pack_a(float* to) const {
    if (x.transpose_a) {
      return pack_rows(x.a, x.m, x.k, slice, row, rows,
                       [&](int64_t i) { return std::pair(to + i, kColumnStep); });
    }
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t p = 0; p < slice.count; p += kWidth) {
        store_pairs(to + i * kRowStep + p,
                    pairs_of_row(x.a + (row + i) * x.k, slice.from + p, x.k));
      }
    }
  }

  // Computes columns of c from column j on and returns their number.
  int64_t compute_columns(const float* a, int64_t j, int64_t last) const {
    const int64_t left = last - j;
    if (left < kPanel) {
      const Scratch<float> panel(slice.count * panel_width(left));
      pack_columns(x, slice, j, left, panel.data());
      compute_panel(a, panel.data(), j, left);
      return left;
    }
    const bool is_wide = rows <= kWideRows && left >= kGroup;
    const auto function = x.transpose_a ? unpacked_tile_function<true>(rows, is_wide)
                                        : unpacked_tile_function<false>(rows, is_wide);
    const bool has_bias = ends && x.epilogue.bias != nullptr;
    function({.a = a,
              .b = x.b + 2 * slice.from * x.n + j,
              .c = x.c + j,
              .ldb = x.n,
              .ldc = x.n,
              .k = std::min(2 * slice.count, x.k - 2 * slice.from),
              .accumulate = slice.from > 0,
              .bias = has_bias ? x.epilogue.bias + j : nullptr,
              .relu = ends && x.epilogue.relu});
    return is_wide ? kGroup : kPanel;
  }

  void compute_panel(const float* a, const float* b, int64_t j, int64_t columns) const {
    const int64_t width = panel_width(columns);
    alignas(64) float bias[kPanel] = {};
    Tile tile = {
        .b = b, .k = slice.count, .accumulate = slice.from > 0, .relu = ends && x.epilogue.relu};
    if (ends && x.epilogue.bias != nullptr) {
      std::copy_n(x.epilogue.bias + j, columns, bias);
      tile.bias = bias;
    }
    const int64_t tiles = blocks_of(rows, kMostRows);
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t from = rows * t / tiles;
      const int64_t count = rows * (t + 1) / tiles - from;
      const auto function = tile_function(count, width / kWidth, x.transpose_a);
      tile.a = a + from * (x.transpose_a ? 1 : kRowStep);
      float* const c = x.c + (row + from) * x.n + j;
      if (columns == width) {
        tile.c = c;
        tile.ldc = x.n;
        function(tile);
      } else {
        compute_narrow(function, tile, c, count, columns, width);
      }
    }
  }

  // Computes a tile of full width in a buffer and copies the columns that exist.
  void compute_narrow(TileFunction function, Tile tile, float* c, int64_t count, int64_t columns,
                      int64_t width) const {
    alignas(64) float full[kMostRows * kPanel];
    tile.c = full;
    tile.ldc = width;
    if (tile.accumulate) {
      for (int64_t i = 0; i < count; ++i) std::copy_n(c + i * x.n, columns, full + i * width);
    }
    function(tile);
    for (int64_t i = 0; i < count; ++i) std::copy_n(full + i * width, columns, c + i * x.n);
  }
};

// Pairs in a row of sums: the widest register of any target, so the bits are the same on all
// machines.
constexpr int64_t kRowPairs = 16;

// Returns x . y. The pairs of y are packed and padded with zeros to a whole row. There are four
// rows of sums, fixed by k.
inline float dot(const float* x, const float* y, int64_t k) {
  constexpr int kRows = 4;
  constexpr int kRowVectors = kRowPairs / kWidth;
  Vector sums[kRows * kRowVectors] = {};
  const auto add_row = [&](int row, int64_t p, const auto& pairs_at) {
#pragma GCC unroll 4
    for (int v = 0; v < kRowVectors; ++v) {
      const int64_t at = p + v * kWidth;
      Vector& sum = sums[row * kRowVectors + v];
      sum = multiply_add(pairs_at(at), load_pairs(y + at), sum);
    }
  };
  int64_t p = 0;
  for (; 2 * (p + kRows * kRowPairs) <= k; p += kRows * kRowPairs) {
#pragma GCC unroll 4
    for (int row = 0; row < kRows; ++row) {
      add_row(row, p + row * kRowPairs,
              [&](int64_t at) { return adjacent(load(x + 2 * at), load(x + 2 * at + kWidth)); });
    }
  }
  for (; 2 * p < k; p += kRowPairs) {
    add_row(0, p, [&](int64_t at) { return pairs_of_row(x, at, k); });
  }
  float row[kRowPairs];
#pragma GCC unroll 4
  for (int v = 0; v < kRowVectors; ++v) {
    store(row + v * kWidth, (sums[v] + sums[v + kRowVectors]) +
                                (sums[v + 2 * kRowVectors] + sums[v + 3 * kRowVectors]));
  }
  float sum = 0;
  for (const float part : row) sum += part;
  return sum;
}

inline void multiply_vector(const Product& x) {
  const int64_t pairs = blocks_of(x.k, 2 * kRowPairs) * kRowPairs;
  const Scratch<float> y(pairs);
  for (int64_t p = 0; p < pairs; p += kWidth) {
    store_pairs(y.data() + p, pairs_of_row(x.b, p, x.k));
  }
  const int64_t grain = std::max<int64_t>(1, 8 * kFewElements / std::max<int64_t>(x.k, 1));
  parallel_for_flushing(x.m, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      x.c[i] = finish(dot(x.a + i * x.k, y.data(), x.k), x.epilogue, 0);
    }
  });
}

inline void multiply(const Product& x) {
  const int64_t pairs = blocks_of(x.k, 2);
  const int64_t slices = std::max<int64_t>(1, blocks_of(pairs, kBlockPairs));
  const int64_t most = blocks_of(pairs, slices);
  const bool has_few_rows = x.m <= kMostRows && !x.transpose_b;
  const Scratch<float> panels(has_few_rows ? 0 : blocks_of(x.n, kWidth) * kWidth * most);
  const int64_t blocks = has_few_rows ? 1 : blocks_of(x.m, kBlockRows);
  for (int64_t s = 0; s < slices; ++s) {
    const Slice slice = {.from = s * most, .count = std::min(most, pairs - s * most)};
    const auto block = [&](int64_t i) {
      const int64_t row = x.m * i / blocks;
      return Block{.x = x,
                   .slice = slice,
                   .ends = s + 1 == slices,
                   .row = row,
                   .rows = x.m * (i + 1) / blocks - row};
    };
    if (has_few_rows) {
      block(0).compute_unpacked();
      continue;
    }
    pack_b(x, slice, panels.data());
    parallel_for_flushing(blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) block(i).compute(panels.data());
    });
  }
}

inline void multiply_in_vectors(const Product& x) {
  if (finish_empty_sums(x)) return;
  const FlushSubnormals flush;
  const bool has_epilogue = x.epilogue.bias != nullptr || x.epilogue.relu;
  if (x.n == 1 && !x.transpose_a) {
    multiply_vector(x);
  } else if (x.n == 1 && !has_epilogue) {
    multiply({x.b, x.a, x.c, 1, x.m, x.k, false, false, {}});  // c's only column, computed as a row
  } else {
    multiply(x);
  }
}

}  // namespace bf16
}  // namespace KEEL_BF16_NAMESPACE
}  // namespace keel::kernels::internal
