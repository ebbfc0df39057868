// The products of gemm_bf16 (framework/kernels/gemm/gemm_bf16.h) in vector registers. This header
// is included by gemm_bf16_avx512.cc, which is compiled for AVX512-BF16, and by
// gemm_bf16_portable.cc, which is not.
#pragma once

#include <algorithm>
#include <utility>

#include <keel/framework/kernels/gemm/bf16_dot.h>
#include <keel/framework/kernels/gemm/bf16_packing.h>
#include <keel/framework/kernels/gemm/bf16_vector_tiles.h>
#include <keel/framework/kernels/gemm/gemm_args.h>
#include <keel/framework/kernels/scratch.h>
#include <keel/framework/kernels/update_rules/flush_subnormals.h>

namespace keel::kernels::internal {
inline namespace KEEL_BF16_NAMESPACE {
namespace bf16 {

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
