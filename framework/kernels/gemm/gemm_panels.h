// Products with an operand that lies in panels: columns that are read together lie together.
#pragma once

#include <cstdint>

#include <keel/framework/kernels/gemm/gemm_args.h>
#include <keel/framework/kernels/gemm/gemm_tile_functions.h>

namespace keel::kernels::internal {

inline constexpr int64_t kPanel = 2 * kWidth;  // columns of a panel

// Floats of panels with `depth` rows and `columns` columns.
inline int64_t panels_size(int64_t depth, int64_t columns) {
  return depth * blocks_of(columns, kWidth) * kWidth;
}

// Panels, one after the other, the last perhaps of one register only, of op(b), [depth, columns]:
// zeros after the last column. Rows of b are ldb apart; if transposed, it is [columns, depth].
void pack(const float* b, int64_t ldb, bool transpose_b, int64_t depth, int64_t columns, float* to);

// Floats of the tiles of `rows` rows and `depth` columns of op(a), which a strip packs: of every
// tile of at most kMostRows rows its columns one after the other, kPackedRows apart.
inline int64_t tiles_size(int64_t rows, int64_t depth) {
  return blocks_of(rows, kMostRows) * depth * kPackedRows;
}

// Whether a, transposed, is better read from such tiles: where the processor does not follow steps
// from row to row of it, and so many columns are multiplied by it that the copy pays. It takes
// fewer if a has to be brought to the caches anyway.
bool pays_to_pack_tiles(int64_t rows, int64_t columns, bool from_afar = false);

// Memory that will be needed after this product, `floats` from `from`. Each tile fetches a line in
// every eighth step from where its part begins, be that less or more than the part.
struct PrefetchRange {
  const float* from = nullptr;
  int64_t floats = 0;

  // Of `count` equal parts, in whole lines of the cache, those from `first` on up to `end`.
  PrefetchRange parts(int64_t first, int64_t end, int64_t count) const;
};

// Rows of some columns of c: tile.b, tile.ldb and what belongs to the columns is set; `columns` of
// `wide` registers count.
struct Strip {
  Tile tile;
  const float* a;
  int64_t lda;
  bool transpose_a;
  float* c;
  int64_t ldc, rows, columns, wide;
  // Memory of tiles_size, for a that is transposed, and the floats that may be read of each row of
  // it from `a` on: a strip of two registers packs tiles there, or one finds them there, and then
  // `a` does not count.
  float* tiles = nullptr;
  int64_t readable = 0;
  bool packs = false;
  // Memory of panels_size for b as it is, which is packed there: by the first tile, if the strip is
  // a whole panel.
  float* panel = nullptr;
  // Fetched meanwhile, if next_c is set: what is written after these rows, and two more.
  const float* next_c = nullptr;
  PrefetchRange ahead[2] = {};

  void compute();

 private:
  // Sets up a tile of these rows, and says what computes it.
  TileFunction begin_tile(int64_t number, int64_t from, int64_t end);
  void compute_narrow(TileFunction function, float* to, int64_t count);
};

// c = a . panels, or c += it, whose rows [from, from + depth) are op(a)'s columns.
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
