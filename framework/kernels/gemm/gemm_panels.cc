#include <keel/framework/kernels/gemm/gemm_panels.h>

#include <algorithm>
#include <utility>

#include <keel/framework/kernels/processor.h>

namespace keel::kernels::internal {
namespace {

constexpr int64_t kAhead = 8;  // rows prefetched before they are packed
constexpr int64_t kLine = 64 / sizeof(float);

// Reads b row by row, in memory order.
void pack_rows(const float* b, int64_t ldb, int64_t depth, int64_t columns, float* to) {
  for (int64_t p = 0; p < depth; ++p) {
    const float* row = b + p * ldb;
    int64_t j = 0;
    for (float* panel = to + p * kPanel; j + kPanel <= columns; j += kPanel) {
      __builtin_prefetch(row + kAhead * ldb + j);
      __builtin_prefetch(row + kAhead * ldb + j + kWidth);
      store(panel, load(row + j));
      store(panel + kWidth, load(row + j + kWidth));
      panel += depth * kPanel;
    }
    if (j == columns) continue;
    const int64_t width = columns - j > kWidth ? kPanel : kWidth;
    float* end = std::copy(row + j, row + columns, to + j * depth + p * width);
    std::fill_n(end, width - (columns - j), 0.0F);
  }
}

// Packs a transposed b: each square of kWidth rows and columns is transposed in registers.
void pack_columns(const float* b, int64_t ldb, int64_t depth, int64_t columns, float* to) {
  for (int64_t j = 0; j < columns; j += kWidth) {
    const int64_t start = j / kPanel * kPanel;  // first column of the panel
    const int64_t width = columns - start > kWidth ? kPanel : kWidth;
    float* panel = to + start * depth + (j - start);
    const float* from = b + j * ldb;
    const int64_t count = std::min<int64_t>(kWidth, columns - j);
    int64_t p = 0;
    if (count == kWidth) {
      for (; p + kWidth <= depth; p += kWidth) {
        transpose_square(from + p, ldb, panel + p * width, width);
      }
    }
    for (; p < depth; ++p) {
      for (int64_t q = 0; q < kWidth; ++q) {
        panel[p * width + q] = q < count ? from[q * ldb + p] : 0;
      }
    }
  }
}

// Packs a tile whose registers would reach beyond the rows of a.
void pack_tile(const Tile& tile, int64_t rows, float* to) {
  for (int64_t p = 0; p < tile.k; ++p) {
    std::copy_n(tile.a + p * tile.lda, rows, to + p * kPackedRows);
  }
}

}  // namespace

PrefetchRange PrefetchRange::parts(int64_t first, int64_t end, int64_t count) const {
  if (from == nullptr) return {};
  const int64_t begin = floats * first / count / kLine * kLine;
  return {.from = from + begin, .floats = floats * end / count / kLine * kLine - begin};
}

void pack(const float* b, int64_t ldb, bool transpose_b, int64_t depth, int64_t columns,
          float* to) {
  if (transpose_b) {
    pack_columns(b, ldb, depth, columns, to);
  } else {
    pack_rows(b, ldb, depth, columns, to);
  }
}

bool pays_to_pack_tiles(int64_t rows, int64_t columns, bool from_afar) {
  return kMissesLongStrides && rows >= 2 * kMostRows && columns >= (from_afar ? 2 : 4) * kPanel;
}

TileFunction Strip::begin_tile(int64_t number, int64_t from, int64_t end) {
  tile.a = a + (transpose_a ? from : from * lda);
  tile.lda = lda;
  tile.packed_a = nullptr;
  if (tiles != nullptr) {
    float* const packed = tiles + number * tile.k * kPackedRows;
    if (packs && from + kPackedRows <= readable) {
      tile.packed_a = packed;
    } else {
      if (packs) pack_tile(tile, end - from, packed);
      tile.a = packed;
      tile.lda = kPackedRows;
    }
  }
  tile.packed_b = number == 0 && end < rows ? panel : nullptr;  // for the tiles after this one
  if (number == 1 && panel != nullptr) {
    tile.b = panel;
    tile.ldb = wide * kWidth;
  }
  if (tile.packed_a == nullptr && tile.packed_b == nullptr) {
    return tile_function(end - from, wide, transpose_a);
  }
  return packing_tile_function(end - from, transpose_a, tile.packed_a != nullptr,
                               tile.packed_b != nullptr);
}

void Strip::compute() {
  if (panel != nullptr && columns < kPanel) {
    pack(tile.b, tile.ldb, false, tile.k, columns, panel);
    tile.b = std::exchange(panel, nullptr);
    tile.ldb = wide * kWidth;
  }
  const int64_t most = wide <= 2 ? kMostRows : 2 * kMostRows / wide;
  const int64_t count = blocks_of(rows, most);
  for (int64_t t = 0; t < count; ++t) {
    const int64_t from = rows * t / count;
    const int64_t end = rows * (t + 1) / count;
    const auto function = begin_tile(t, from, end);
    if (next_c != nullptr) {
      tile.next_c = t + 1 < count ? c + end * ldc : next_c;
      tile.next_step = ldc;
      for (int i = 0; i < 2; ++i) tile.ahead[i] = ahead[i].parts(t, t + 1, count).from;
    }
    if (columns == wide * kWidth) {
      tile.c = c + from * ldc;
      tile.ldc = ldc;
      function(tile);
    } else {
      compute_narrow(function, c + from * ldc, end - from);
    }
  }
}

// Computes a tile of full width in a buffer and copies the columns that exist.
void Strip::compute_narrow(TileFunction function, float* to, int64_t count) {
  alignas(64) float full[kMostRows * kPanel];
  tile.c = full;
  tile.ldc = wide * kWidth;
  if (tile.accumulate) {
    for (int64_t i = 0; i < count; ++i) std::copy_n(to + i * ldc, columns, full + i * tile.ldc);
  }
  function(tile);
  for (int64_t i = 0; i < count; ++i) std::copy_n(full + i * tile.ldc, columns, to + i * ldc);
}

void PanelProduct::compute() const {
  const int64_t count = blocks_of(columns, kPanel);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t j = i * kPanel;
    const int64_t wide = columns - j > kWidth ? 2 : 1;
    const int64_t width = wide * kWidth;
    Strip strip = {.tile = {.b = panels + j * panel_depth + from * width,
                            .ldb = width,
                            .k = depth,
                            .accumulate = accumulate,
                            .relu = epilogue.relu},
                   .a = a,
                   .lda = lda,
                   .transpose_a = transpose_a,
                   .c = c + j,
                   .ldc = ldc,
                   .rows = rows,
                   .columns = std::min(width, columns - j),
                   .wide = wide,
                   .next_c = c + (i + 1 < count ? j + kPanel : rows * ldc)};
    if (i + 1 < count) {
      strip.ahead[0] = {.from = panels + (j + kPanel) * panel_depth + from * kPanel,
                        .floats = depth * kPanel};
    }
    strip.ahead[1] = next.parts(i, i + 1, count);
    alignas(64) float bias[kPanel];
    if (epilogue.bias != nullptr) {
      strip.tile.bias = epilogue.bias + j;
      if (strip.columns < width) {
        std::fill(std::copy_n(strip.tile.bias, strip.columns, bias), bias + width, 0.0F);
        strip.tile.bias = bias;
      }
    }
    strip.compute();
  }
}

}  // namespace keel::kernels::internal
