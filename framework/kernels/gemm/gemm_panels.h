// Matrix products with an operand that is packed in panels: the columns that a tile reads together
// are stored together.
#pragma once

#include <cstdint>

#include <keel/framework/kernels/gemm/gemm_args.h>
#include <keel/framework/kernels/gemm/gemm_tile_functions.h>

namespace keel::kernels::internal {

inline constexpr int64_t kPanel = 2 * kWidth;  // columns of a panel

// Returns the number of floats in panels with `depth` rows and `columns` columns.
inline int64_t panels_size(int64_t depth, int64_t columns) {
  return depth * blocks_of(columns, kWidth) * kWidth;
}

// Packs op(b), [depth, columns], into panels, one after the other; the last one may be one register
// wide. Columns after the last are zero. Rows of b are `ldb` apart; if `transpose_b`, b is
// [columns, depth].
void pack(const float* b, int64_t ldb, bool transpose_b, int64_t depth, int64_t columns, float* to);

// Returns the number of floats in the tiles of `rows` rows and `depth` columns of op(a) that a
// Strip packs. A tile has at most kMostRows rows; its columns follow each other, kPackedRows apart.
inline int64_t tiles_size(int64_t rows, int64_t depth) {
  return blocks_of(rows, kMostRows) * depth * kPackedRows;
}

// Returns whether reading a transposed `a` from such tiles is faster than reading it in place. This
// is the case if the hardware prefetcher does not follow the stride between its rows, and enough
// columns are multiplied by it to repay the copy. Fewer columns suffice if `from_afar`, that is, if
// `a` must be fetched into the caches anyway.
bool pays_to_pack_tiles(int64_t rows, int64_t columns, bool from_afar = false);

// Memory that is needed after this product: `floats` floats from `from` on. Each tile prefetches
// one cache line in every eighth step, from the beginning of its part. This may cover less or more
// than the part.
struct PrefetchRange {
  const float* from = nullptr;
  int64_t floats = 0;

  // Returns the parts [first, end) of `count` equal parts, rounded to whole cache lines.
  PrefetchRange parts(int64_t first, int64_t end, int64_t count) const;
};

// Rows of a few columns of c. In `tile`, b, ldb and the fields that belong to the columns are set.
// The strip is `wide` registers wide; `columns` of these columns exist in c.
struct Strip {
  Tile tile;
  const float* a;
  int64_t lda;
  bool transpose_a;
  float* c;
  int64_t ldc, rows, columns, wide;
  // `tiles` is memory of tiles_size() floats for a transposed a, and `readable` is the number of
  // floats that may be read of each row of a from `a` on. If `packs`, this strip, two registers
  // wide, packs the tiles. Otherwise the tiles are already packed, and `a` is not read.
  float* tiles = nullptr;
  int64_t readable = 0;
  bool packs = false;
  // Memory of panels_size() floats for packing b, which is not transposed. The first tile packs it
  // if the strip is a whole panel.
  float* panel = nullptr;
  // Prefetched during the products if next_c is set: the part of c that is written after these
  // rows, and two more ranges.
  const float* next_c = nullptr;
  PrefetchRange ahead[2] = {};

  // Computes the strip of c.
  void compute();

 private:
  // Sets up tile `number`, for the rows [from, end), and returns the function that computes it.
  TileFunction begin_tile(int64_t number, int64_t from, int64_t end);
  void compute_narrow(TileFunction function, float* to, int64_t count);
};

// Computes c = a . panels, or c += a . panels if `accumulate`. The columns of op(a) correspond to
// the rows [from, from + depth) of the panels, which have `panel_depth` rows in memory.
struct PanelProduct {
  const float* a;
  int64_t lda;
  bool transpose_a;
  const float* panels;
  int64_t panel_depth, from, depth;
  float* c;
  int64_t ldc, rows, columns;
  bool accumulate;
  GemmEpilogue epilogue = {};
  PrefetchRange next = {};

  void compute() const;
};

}  // namespace keel::kernels::internal
