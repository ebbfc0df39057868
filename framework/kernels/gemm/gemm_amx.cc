#include <keel/framework/kernels/gemm/amx_tiles.h>

#if KEEL_AVX512

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/gemm/bf16_tiles.h>
#include <keel/framework/kernels/gemm/gemm_dispatch.h>
#include <keel/framework/kernels/scratch.h>

namespace keel::kernels::internal {
namespace {

constexpr int64_t kPanel = 2 * kTileLanes;  // columns of c that two tiles hold
constexpr int64_t kRows = 2 * kTileRows;    // rows of c that two tiles hold
constexpr int64_t kMostSteps = 16;          // steps per slice; the next slice adds to c
constexpr int64_t kGroup = 4 * kPanel;      // columns of b that are packed at once
constexpr int64_t kBlockRows = 4 * kRows;   // rows of c per task
constexpr int64_t kFewElements = 1 << 15;   // elements of b per packing task

// The 32-bit words of one row or column of tiles in one step of the sums.
template <int kParts>
constexpr int64_t kStepSize = int64_t{kParts} * kTileSize;

int64_t tiles_of(int64_t n) { return blocks_of(n, kTileRows); }

// The steps [from, from + count) of the sums.
struct Slice {
  int64_t from, count;

  int64_t first() const { return from * kTileStep; }
};

// The product of one, two or four tiles of c.
struct TileProduct {
  const uint32_t *a, *b;
  int64_t steps;  // consecutive tiles of a and b; those of the second row or column follow
  float* c;
  int64_t ldc;
  bool accumulate;  // c += instead of c =
  // kRows rows of c, one panel wide, that a later product writes; prefetched during this product.
  // null: none.
  const float* next;
  int64_t next_step;
};

// One step of the sums.
template <bool kTwoRows, bool kTwoColumns>
struct TileStep {
  const uint32_t *a, *b;
  int64_t second;  // distance between the tiles of the first and second row or column

  // The tiles of b are loaded with the streaming hint, which bypasses the L1 cache. The tiles of a
  // stay there, because the next columns need them too.
  void multiply() const {
    load_a(0);
    _tile_stream_loadd(6, b, kTileRowBytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kTwoRows) _tile_dpbf16ps(2, 5, 6);
    if constexpr (kTwoColumns) {
      _tile_stream_loadd(7, b + second, kTileRowBytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kTwoRows && kTwoColumns) _tile_dpbf16ps(3, 5, 7);
  }

  // Adds the six significant products of the three parts, small ones first, in an order that
  // changes few tiles at a time.
  void multiply_parts() const {
    load_a(2);
    load_b(0);
    add_products();
    load_a(1);
    add_products();
    load_b(1);
    add_products();
    load_a(0);
    add_products();
    load_b(2);
    add_products();
    load_b(0);
    add_products();
  }

 private:
  void load_a(int part) const {
    _tile_loadd(4, a + part * kTileSize, kTileRowBytes);
    if constexpr (kTwoRows) _tile_loadd(5, a + second + part * kTileSize, kTileRowBytes);
  }
  void load_b(int part) const {
    _tile_loadd(6, b + part * kTileSize, kTileRowBytes);
    if constexpr (kTwoColumns) _tile_loadd(7, b + second + part * kTileSize, kTileRowBytes);
  }
  static void add_products() {
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kTwoRows) _tile_dpbf16ps(2, 5, 6);
    if constexpr (kTwoColumns) _tile_dpbf16ps(1, 4, 7);
    if constexpr (kTwoRows && kTwoColumns) _tile_dpbf16ps(3, 5, 7);
  }
};

template <int kParts, bool kTwoRows, bool kTwoColumns>
void multiply_tiles(const TileProduct& t) {
  constexpr bool kFour = kTwoRows && kTwoColumns;
  const int64_t step = t.ldc * static_cast<int64_t>(sizeof(float));
  float* const second_row = t.c + kTileRows * t.ldc;
  asm volatile("" ::: "memory");  // GCC's tile loads are not declared to read memory
  if (t.accumulate) {
    _tile_loadd(0, t.c, step);
    if constexpr (kTwoColumns) _tile_loadd(1, t.c + kTileLanes, step);
    if constexpr (kTwoRows) _tile_loadd(2, second_row, step);
    if constexpr (kFour) _tile_loadd(3, second_row + kTileLanes, step);
  } else {
    _tile_zero(0);
    if constexpr (kTwoColumns) _tile_zero(1);
    if constexpr (kTwoRows) _tile_zero(2);
    if constexpr (kFour) _tile_zero(3);
  }
  TileStep<kTwoRows, kTwoColumns> tiles = {t.a, t.b, t.steps * kStepSize<kParts>};
  const float* fetched = t.next;
  const int64_t fetches = fetched == nullptr ? 0 : blocks_of(kRows, std::max<int64_t>(1, t.steps));
  for (int64_t s = 0; s < t.steps; ++s) {
    kParts == 1 ? tiles.multiply() : tiles.multiply_parts();
    tiles.a += kStepSize<kParts>;
    tiles.b += kStepSize<kParts>;
    for (int64_t i = 0; i < fetches; ++i, fetched += t.next_step) {
      __builtin_prefetch(fetched, 1);
      __builtin_prefetch(fetched + kTileLanes, 1);
    }
  }
  _tile_stored(0, t.c, step);
  if constexpr (kTwoColumns) _tile_stored(1, t.c + kTileLanes, step);
  if constexpr (kTwoRows) _tile_stored(2, second_row, step);
  if constexpr (kFour) _tile_stored(3, second_row + kTileLanes, step);
}

template <int kParts>
void multiply_tiles(const TileProduct& t, int64_t rows, int64_t columns) {
  if (rows > kTileRows) {
    columns > kTileLanes ? multiply_tiles<kParts, true, true>(t)
                         : multiply_tiles<kParts, true, false>(t);
  } else {
    columns > kTileLanes ? multiply_tiles<kParts, false, true>(t)
                         : multiply_tiles<kParts, false, false>(t);
  }
}

// Packs the columns [first, first + columns) of op(b), one column of tiles after the other.
template <int kParts>
void pack_b(const Product& x, Slice slice, int64_t first, int64_t columns, uint32_t* to) {
  const int64_t tiles = tiles_of(columns);
  if (x.transpose_b) {
    const Piece b = Piece{x.b, x.k, x.n, x.k}.from(first, slice.first());
    for (int64_t j = 0; j < tiles; ++j) {
      for (int64_t s = 0; s < slice.count; ++s, to += kStepSize<kParts>) {
        pack_adjacent<kParts, true>(b.from(j * kTileLanes, s * kTileStep), to);
      }
    }
    return;
  }
  const Piece b = Piece{x.b, x.n, x.k, first + columns}.from(slice.first(), first);
  for (int64_t s = 0; s < slice.count; ++s) {
    for (int64_t j = 0; j < tiles; ++j) {
      pack_interleaved<kParts, false>(b.from(s * kTileStep, j * kTileLanes),
                                      to + (j * slice.count + s) * kStepSize<kParts>);
    }
  }
}

// Packs the rows [first, first + rows) of op(a), one row of tiles after the other.
template <int kParts>
void pack_a(const Product& x, Slice slice, int64_t first, int64_t rows, uint32_t* to) {
  const int64_t tiles = tiles_of(rows);
  if (x.transpose_a) {
    const Piece a = Piece{x.a, x.m, x.k, first + rows}.from(slice.first(), first);
    for (int64_t s = 0; s < slice.count; ++s) {
      for (int64_t t = 0; t < tiles; ++t) {
        pack_interleaved<kParts, true>(a.from(s * kTileStep, t * kTileRows),
                                       to + (t * slice.count + s) * kStepSize<kParts>);
      }
    }
    return;
  }
  // Reads a row by row, the order in which the hardware prefetches best.
  for (int64_t i = 0; i < tiles * kTileRows; ++i) {
    uint32_t* at =
        to + i / kTileRows * slice.count * kStepSize<kParts> + i % kTileRows * kTileLanes;
    const float* from = x.a + (first + i) * x.k + slice.first();
    int64_t left = i < rows ? x.k - slice.first() : 0;
    for (int64_t s = 0; s < slice.count; ++s, at += kStepSize<kParts>) {
      Adjacent elements = left >= kTileStep ? Adjacent{load(from), load(from + kTileLanes)}
                                            : Adjacent::some(from, left);
#pragma GCC unroll 3
      for (int part = 0; part < kParts; ++part) {
        const Pairs pairs = elements.pairs();
        store_row(at + part * kTileSize, pairs);
        if (part + 1 < kParts) elements = elements.without(pairs);
      }
      from += kTileStep;
      left -= kTileStep;
    }
  }
}

// The columns [first, first + columns) of c, in one slice.
template <int kParts>
struct Columns {
  const Product& x;
  Slice slice;
  bool ends;  // the sums are complete with this slice
  int64_t first, columns;

  // The words per packed row or column, for offsets that are a multiple of kTileRows.
  int64_t words_of_line() const { return slice.count * kStepSize<kParts> / kTileRows; }
  // Words of `lines` packed rows or columns.
  int64_t packed_size(int64_t lines) const {
    return tiles_of(lines) * slice.count * kStepSize<kParts>;
  }

  // Computes the rows [row, row + rows) of c from packed a and b.
  void multiply(const uint32_t* a, const uint32_t* b, int64_t row, int64_t rows) const {
    for (int64_t i = 0; i < rows; i += kRows) {
      for (int64_t j = 0; j < columns; j += kPanel) {
        float* const c = x.c + (row + i) * x.n + first + j;
        const bool goes_on = rows - i >= kRows && columns - j >= 2 * kPanel;
        multiply_panel({.a = a + i * words_of_line(),
                        .b = b + j * words_of_line(),
                        .steps = slice.count,
                        .c = c,
                        .ldc = x.n,
                        .accumulate = slice.from > 0,
                        .next = goes_on ? c + kPanel : nullptr,
                        .next_step = x.n},
                       std::min(kRows, rows - i), std::min(kPanel, columns - j), first + j);
      }
    }
  }

 private:
  void multiply_panel(TileProduct t, int64_t rows, int64_t width, int64_t column) const {
    const bool is_whole = rows % kTileRows == 0 && width % kTileLanes == 0;
    const bool has_bias = ends && x.epilogue.bias != nullptr;
    const bool has_relu = ends && x.epilogue.relu;
    if (is_whole && !has_bias && !has_relu) return multiply_tiles<kParts>(t, rows, width);
    // Edges and epilogues: whole tiles in a buffer, copied with masks.
    alignas(64) float whole[kRows * kPanel];
    float* const c = t.c;
    t.c = whole;
    t.ldc = kPanel;
    const __mmask16 masks[2] = {mask_of(width), mask_of(width - kTileLanes)};
    const auto each = [&](const auto& fn) {
      for (int64_t i = 0; i < rows; ++i) {
        for (int v = 0; v < 2; ++v) {
          fn(whole + i * kPanel + v * kTileLanes, c + i * x.n + v * kTileLanes, v);
        }
      }
    };
    if (t.accumulate) {
      each([&](float* at, const float* from, int v) {
        _mm512_store_ps(at, _mm512_maskz_loadu_ps(masks[v], from));
      });
    }
    multiply_tiles<kParts>(t, rows, width);
    Vector bias[2] = {};
    for (int v = 0; has_bias && v < 2; ++v) {
      bias[v] = _mm512_maskz_loadu_ps(masks[v], x.epilogue.bias + column + v * kTileLanes);
    }
    each([&](const float* from, float* at, int v) {
      Vector sums = load(from);
      if (has_bias) sums += bias[v];
      if (has_relu) sums = sums < Vector{} ? Vector{} : sums;
      _mm512_mask_storeu_ps(at, masks[v], sums);
    });
  }
};

// Multiplies so few rows that each group of columns is multiplied by the worker that packs it.
template <int kParts>
void multiply_few_rows(const Columns<kParts>& c) {
  const Product& x = c.x;
  const Scratch<uint32_t> a(c.packed_size(x.m));
  pack_a<kParts>(x, c.slice, 0, x.m, a.data());
  parallel_for(blocks_of(c.columns, kGroup), 1, [&](int64_t begin, int64_t end) {
    const TileSession session;
    const Scratch<uint32_t> b(c.packed_size(kGroup));
    for (int64_t j = begin * kGroup; j < std::min(c.columns, end * kGroup); j += kGroup) {
      Columns<kParts> group = c;
      group.first += j;
      group.columns = std::min(kGroup, c.columns - j);
      pack_b<kParts>(x, c.slice, group.first, group.columns, b.data());
      group.multiply(a.data(), b.data(), 0, x.m);
    }
  });
}

// Packs the whole slice of b first; then blocks of rows are multiplied in parallel.
template <int kParts>
void multiply_many_rows(const Columns<kParts>& c) {
  const Product& x = c.x;
  const Slice slice = c.slice;
  const Scratch<uint32_t> b(c.packed_size(c.columns));
  const int64_t grain =
      std::max<int64_t>(1, kFewElements / (kGroup * kTileStep * std::max<int64_t>(1, slice.count)));
  parallel_for(blocks_of(c.columns, kGroup), grain, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin * kGroup; j < std::min(c.columns, end * kGroup); j += kGroup) {
      pack_b<kParts>(x, slice, c.first + j, std::min(kGroup, c.columns - j),
                     b.data() + j * c.words_of_line());
    }
  });
  parallel_for(blocks_of(x.m, kBlockRows), 1, [&](int64_t begin, int64_t end) {
    const TileSession session;
    const int64_t height = x.transpose_a ? kBlockRows : kRows;
    const int64_t last = std::min(x.m, end * kBlockRows);
    const Scratch<uint32_t> a(c.packed_size(height));
    for (int64_t i = begin * kBlockRows; i < last; i += height) {
      const int64_t rows = std::min(height, last - i);
      pack_a<kParts>(x, slice, i, rows, a.data());
      c.multiply(a.data(), b.data(), i, rows);
    }
  });
}

// The maximum number of columns: their slice of b, packed, stays in the L2 cache.
template <int kParts>
constexpr int64_t kMostColumns = kParts == 1 ? 1024 : 512;

template <int kParts>
void multiply(const Product& x) {
  if (finish_empty_sums(x)) return;
  const int64_t steps = blocks_of(x.k, kTileStep);
  const int64_t slices = std::max<int64_t>(1, blocks_of(steps, kMostSteps));
  for (int64_t j = 0; j < x.n; j += kMostColumns<kParts>) {
    for (int64_t s = 0; s < slices; ++s) {
      const int64_t from = steps * s / slices;
      const Columns<kParts> columns = {.x = x,
                                       .slice = {from, steps * (s + 1) / slices - from},
                                       .ends = s + 1 == slices,
                                       .first = j,
                                       .columns = std::min(kMostColumns<kParts>, x.n - j)};
      x.m <= kRows ? multiply_few_rows(columns) : multiply_many_rows(columns);
    }
  }
}

}  // namespace

void gemm_bf16_in_tiles(const Product& x) { multiply<1>(x); }
void gemm_in_tiles(const Product& x) { multiply<3>(x); }

}  // namespace keel::kernels::internal

#endif
