#include <keel/framework/kernels/gemm/gemm.h>

#include <algorithm>

#include <keel/framework/base/parallel.h>
#include <keel/framework/internal/math.h>
#include <keel/framework/kernels/gemm/gemm_args.h>
#include <keel/framework/kernels/gemm/gemm_dispatch.h>
#include <keel/framework/kernels/gemm/gemm_panels.h>
#include <keel/framework/kernels/processor.h>
#include <keel/framework/kernels/scratch.h>

namespace keel::kernels {
namespace {

using internal::blocks_of;
using internal::finish;
using internal::kMostRows;
using internal::kPanel;
using internal::kWidth;
using internal::PanelProduct;
using internal::Product;
using internal::Strip;

constexpr int64_t kBlockRows = 256;  // rows of c whose part of a stays in the L2 cache
// The sums are computed in slices; each slice but the first adds to c. The depth of a slice:
constexpr int64_t kBlockDepth = 512;           // by default: a panel of b fits in the L2 cache
constexpr int64_t kPackedDepth = 256;          // if both a and b are packed
constexpr int64_t kStridedDepth = 128;         // if neither is and their strides are not prefetched
constexpr int64_t kManyElements = 1 << 18;     // elements of a from which packing a may pay
constexpr int64_t kGroup = 4 * kPanel;         // columns of b that are packed at once
constexpr int64_t kSmallPanels = 1 << 13;      // elements of b that stay in the L1 cache
constexpr int64_t kManyRows = 2 * kBlockRows;  // rows of c from which op(b) is packed as a whole
constexpr int64_t kStreamedRows = 128;         // rows that are multiplied at once in that case
constexpr int64_t kMostPacked = int64_t{1} << 21;  // elements of b packed at once in that case
constexpr int64_t kFewElements = 1 << 16;          // elements of b per packing task
constexpr int64_t kSharedWork = 1 << 22;  // multiplications from which workers share a product

// Rows whose distance is a multiple of 4 KiB map to the same few sets of a cache.
bool collides(int64_t step) { return step % 1024 == 0; }

// Returns whether the rows of a are copied to another stride instead of being read in place.
bool spreads_rows(const Product& x, int64_t rows) {
  return !x.transpose_a && collides(x.k) && rows > 8 && x.n >= 128;
}

// Returns whether a transposed a is copied to tiles, and b to panels. This does not pay if the
// caches hold a.
bool packs_columns(const Product& x, int64_t rows, int64_t columns) {
  return x.transpose_a && x.k * x.m >= kManyElements && internal::pays_to_pack_tiles(rows, columns);
}

// Returns the width of the next tiles in registers. With few rows, registers are left for more
// columns.
int64_t tile_width(int64_t rows, int64_t columns, bool packed) {
  if (!packed && kMostRows * 2 / internal::kWidest >= rows &&
      columns >= internal::kWidest * kWidth) {
    return internal::kWidest;
  }
  if (!packed && kMostRows / 2 >= rows && columns >= 4 * kWidth) return 4;
  return columns > kWidth ? 2 : 1;
}

// The part of c in the rows [row, row + rows) and the columns [first, last).
struct Block {
  const Product& x;
  int64_t row, rows, first, last;
  bool packs_a = packs_columns(x, rows, last - first);
  // True if b is packed into panels: always if it is transposed, and also if reading it again for
  // every tile of rows would miss the caches.
  bool packs = x.transpose_b || packs_a || (collides(x.ldb()) && rows >= 4 * kMostRows);
  bool spreads = spreads_rows(x, rows);

  void compute() const {
    const int64_t most = packs_a                               ? kPackedDepth
                         : x.transpose_a && kMissesLongStrides ? kStridedDepth
                                                               : kBlockDepth;
    const int64_t slices = blocks_of(x.k, most);
    const int64_t depth = blocks_of(blocks_of(x.k, slices), kWidth) * kWidth;
    const int64_t group = packs ? kGroup : kPanel;
    const Scratch<float> panels(std::min(depth, x.k) * group);
    for (int64_t from = 0; from < x.k; from += depth) {
      compute_slice(from, std::min(depth, x.k - from), panels.data());
    }
  }

 private:
  // Adds the contribution of the rows [from, from + depth) of b.
  void compute_slice(int64_t from, int64_t depth, float* panels) const {
    Strip strip = {.tile = {},
                   .a = x.a + (x.transpose_a ? from * x.m + row : row * x.k + from),
                   .lda = x.lda(),
                   .transpose_a = x.transpose_a,
                   .c = nullptr,
                   .ldc = x.n,
                   .rows = rows,
                   .columns = 0,
                   .wide = 0};
    const int64_t step = depth + kWidth;
    const Scratch<float> spread(spreads ? rows * step : 0);
    if (spreads) {
      for (int64_t i = 0; i < rows; ++i) {
        std::copy_n(strip.a + i * strip.lda, depth, spread.data() + i * step);
      }
      strip.a = spread.data();
      strip.lda = step;
    }
    const Scratch<float> tiles(packs_a ? internal::tiles_size(rows, depth) : 0);
    if (packs_a) {
      strip.tiles = tiles.data();
      strip.readable = x.m - row;
    }
    int64_t packed = first;  // columns before this one are already in panels
    float* panel = panels;
    for (int64_t j = first; j < last; j += strip.columns) {
      strip.wide = tile_width(rows, last - j, packs);
      strip.columns = std::min(strip.wide * kWidth, last - j);
      const int64_t width = strip.wide * kWidth;
      strip.tile = {.b = x.b + from * x.n + j, .ldb = x.n, .k = depth, .accumulate = from > 0};
      strip.panel = nullptr;
      if (packs && !x.transpose_b) {
        strip.panel = panels;
      } else if (packs || strip.columns < width) {
        if (j >= packed) {
          packed = packs ? std::min(last, j + kGroup) : last;
          internal::pack(x.b + (x.transpose_b ? j * x.k + from : from * x.n + j), x.ldb(),
                         x.transpose_b, depth, packed - j, panels);
          panel = panels;
        }
        strip.tile.b = panel;
        strip.tile.ldb = width;
        panel += depth * width;
      }
      if (packs_a) {
        strip.packs = j == first;
        fetch_ahead(from + depth, j, strip);
      }
      finish(from + depth == x.k, j, strip);
    }
  }

  // Sets up the prefetches of a strip. c is read and written once per slice, so the strip
  // prefetches the columns of c that follow it. The next slice begins at `after`; the strip also
  // prefetches its share of that slice of a and b if the slice consists of whole rows.
  void fetch_ahead(int64_t after, int64_t j, Strip& strip) const {
    const int64_t next = j + strip.columns, n = last - first;
    strip.next_c = x.c + row * x.n + std::min(next, last - 1);
    const int64_t depth = std::min(strip.tile.k, x.k - after);
    const auto part = [&](const float* of, int64_t step) {
      const internal::PrefetchRange slice = {.from = of + after * step, .floats = depth * step};
      return slice.parts(j - first, next - first, n);
    };
    if (depth > 0 && rows == x.m) strip.ahead[0] = part(x.a, x.m);
    if (depth > 0 && n == x.n && !x.transpose_b) strip.ahead[1] = part(x.b, x.n);
  }

  void finish(bool ends, int64_t j, Strip& strip) const {
    alignas(64) float bias[kPanel];
    if (ends && x.epilogue.bias != nullptr) {
      strip.tile.bias = x.epilogue.bias + j;
      const int64_t width = strip.wide * kWidth;
      if (strip.columns < width) {
        std::fill(std::copy_n(strip.tile.bias, strip.columns, bias), bias + width, 0.0F);
        strip.tile.bias = bias;
      }
    }
    strip.tile.relu = ends && x.epilogue.relu;
    strip.c = x.c + row * x.n + j;
    strip.compute();
  }
};

// Computes the rows [begin, end) of c in the columns of the panels.
void multiply_rows(const Product& x, const float* panels, int64_t first, int64_t columns,
                   int64_t begin, int64_t end) {
  const int64_t slices = std::max<int64_t>(1, blocks_of(x.k, kBlockDepth));
  for (int64_t s = 0; s < slices; ++s) {
    const int64_t from = x.k * s / slices;
    const int64_t depth = x.k * (s + 1) / slices - from;
    const bool last = s + 1 == slices;
    PanelProduct product = {.a = x.a + begin * x.k + from,
                            .lda = x.k,
                            .transpose_a = false,
                            .panels = panels,
                            .panel_depth = x.k,
                            .from = from,
                            .depth = depth,
                            .c = x.c + begin * x.n + first,
                            .ldc = x.n,
                            .rows = end - begin,
                            .columns = columns,
                            .accumulate = s > 0};
    if (last) {
      product.epilogue.relu = x.epilogue.relu;
      if (x.epilogue.bias != nullptr) product.epilogue.bias = x.epilogue.bias + first;
    }
    // The rows of a after these; each slice prefetches a part of them.
    const int64_t rows = std::min(end - begin, x.m - end);
    if (rows > 0) {
      product.next = {.from = x.a + end * x.k + rows * from, .floats = rows * depth};
    }
    product.compute();
  }
}

// Packs op(b) as a whole for all rows of a, which stream through the caches in blocks.
void multiply_many_rows(const Product& x) {
  const int64_t most = std::max(kGroup, kMostPacked / x.k / kGroup * kGroup);
  const Scratch<float> panels(internal::panels_size(x.k, std::min(most, x.n)));
  for (int64_t first = 0; first < x.n; first += most) {
    const int64_t columns = std::min(most, x.n - first);
    const int64_t grain = std::max<int64_t>(1, kFewElements / (x.k * kGroup));
    parallel_for(blocks_of(columns, kGroup), grain, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin * kGroup; j < std::min(columns, end * kGroup); j += kGroup) {
        internal::pack(x.b + (first + j) * (x.transpose_b ? x.k : 1), x.ldb(), x.transpose_b, x.k,
                       std::min(kGroup, columns - j), panels.data() + j * x.k);
      }
    });
    const int64_t blocks = blocks_of(x.m, kStreamedRows);
    parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        multiply_rows(x, panels.data(), first, columns, x.m * block / blocks,
                      x.m * (block + 1) / blocks);
      }
    });
  }
}

// Returns the number of columns of c per task. If a is packed, every task packs it again.
int64_t columns_of_block(const Product& x) {
  if (!packs_columns(x, x.m, x.n)) return kGroup;
  const int64_t workers = parallel_runs_in_place() ? 1 : num_workers();
  return std::max(kGroup, blocks_of(blocks_of(x.n, workers), kPanel) * kPanel);
}

// Divides c into rows first, so that each worker reads its own rows of a. If that makes a single
// block, divides c into columns or smaller blocks of rows.
void multiply(const Product& x) {
  if (x.m >= kManyRows && !x.transpose_a) return multiply_many_rows(x);
  int64_t row_blocks = blocks_of(x.m, x.transpose_a || x.transpose_b ? 2 * kBlockRows : kBlockRows);
  int64_t columns = x.n;
  if (x.k * x.n <= kSmallPanels) {
    row_blocks = blocks_of(x.m, 4 * kMostRows);
  } else if (row_blocks == 1 && x.m * x.n * x.k >= kSharedWork) {
    if (!spreads_rows(x, x.m)) columns = columns_of_block(x);
    const bool alone = packs_columns(x, x.m, x.n) && parallel_runs_in_place();
    if (columns >= x.n && !alone) row_blocks = blocks_of(x.m, kBlockRows / 2);
  }
  const int64_t column_blocks = blocks_of(x.n, columns);
  parallel_for(row_blocks * column_blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t i = block / column_blocks, j = block % column_blocks * columns;
      const int64_t row = x.m * i / row_blocks;
      Block{.x = x,
            .row = row,
            .rows = x.m * (i + 1) / row_blocks - row,
            .first = j,
            .last = std::min(x.n, j + columns)}
          .compute();
    }
  });
}

// Computes out[i] = rows[i] . vector. The bias of out[i] is bias[i * bias_step].
void multiply_vector(const float* rows, const float* vector, float* out, int64_t count, int64_t k,
                     const GemmEpilogue& epilogue, int64_t bias_step) {
  const int64_t grain = std::max<int64_t>(1, kSharedWork / 8 / k);
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      out[i] = finish(internal::dot(rows + i * k, vector, k), epilogue, i * bias_step);
    }
  });
}

// Products of double, which are used to check gradients and rarely for training. Each element is
// one chain of fused multiply-adds over p = 0, 1, ..., as in float.
struct DoubleProduct {
  static constexpr int64_t kRows = 4, kColumns = 8;  // size of a tile whose sums stay in registers

  const double *a, *b;
  double* c;
  int64_t m, n, k;
  bool transpose_a, transpose_b;

  // Packs the columns [first, first + kColumns) of op(b) as [k, kColumns], with zeros after the
  // last column.
  void pack(int64_t first, double* to) const {
    const int64_t columns = std::min(kColumns, n - first);
    for (int64_t p = 0; p < k; ++p, to += kColumns) {
      for (int64_t j = 0; j < kColumns; ++j) {
        const int64_t at = transpose_b ? (first + j) * k + p : p * n + first + j;
        to[j] = j < columns ? b[at] : 0.0;
      }
    }
  }

  void multiply_rows(int64_t begin, int64_t end, int64_t first, const double* panel) const {
    for (int64_t row = begin; row < end; row += kRows) {
      const int64_t rows = std::min(kRows, end - row);
      double sums[kRows][kColumns] = {};
      for (int64_t p = 0; p < k; ++p) {
        const double* const y = panel + p * kColumns;
        for (int64_t i = 0; i < kRows; ++i) {
          const int64_t in_range = row + std::min(i, rows - 1);  // rows past the end are not stored
          const double x = a[transpose_a ? p * m + in_range : in_range * k + p];
          for (int64_t j = 0; j < kColumns; ++j) {
            sums[i][j] = math::multiply_add(x, y[j], sums[i][j]);
          }
        }
      }
      for (int64_t i = 0; i < rows; ++i) {
        std::copy_n(sums[i], std::min(kColumns, n - first), c + (row + i) * n + first);
      }
    }
  }
};

}  // namespace

// The cost of packing is proportional to (m + n) k, its gain to m n k.
bool internal::multiplies_in_tiles(MatmulPrecision precision, int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kLeastDepth = 64, kLeastWidth = 64;
  return precision == MatmulPrecision::kHigh && k >= kLeastDepth &&
         m * n >= kLeastWidth * (m + n) && may_use_tiles();
}

void gemm(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k,
          bool transpose_a, bool transpose_b, const GemmEpilogue& epilogue,
          [[maybe_unused]] MatmulPrecision precision) {
  if (m == 0 || n == 0) return;
  Product x = {a, b, c, m, n, k, transpose_a, transpose_b, epilogue};
  if (internal::finish_empty_sums(x)) return;
  const bool has_epilogue = epilogue.bias != nullptr || epilogue.relu;
  if (k == 1) x.transpose_b = false;  // op(b) is one row in both layouts
  if (n == 1 && !transpose_a) return multiply_vector(a, b, c, m, k, epilogue, 0);
  if (n == 1 && !has_epilogue) {
    return multiply({b, a, c, 1, m, k, false, false, {}});  // c's only column, computed as a row
  }
  if (m == 1 && x.transpose_b) return multiply_vector(b, a, c, n, k, epilogue, 1);
#if KEEL_AVX512
  if (internal::multiplies_in_tiles(precision, m, n, k)) return internal::gemm_in_tiles(x);
#endif
  multiply(x);
}

void gemm(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k,
          bool transpose_a, bool transpose_b) {
  const DoubleProduct x = {a, b, c, m, n, k, transpose_a, transpose_b};
  const int64_t panels = blocks_of(n, DoubleProduct::kColumns);
  const int64_t work = std::max<int64_t>(1, m * k * DoubleProduct::kColumns);
  parallel_for(panels, std::max<int64_t>(1, kSharedWork / 8 / work),
               [&](int64_t begin, int64_t end) {
                 const Scratch<double> panel(k * DoubleProduct::kColumns);
                 for (int64_t i = begin; i < end; ++i) {
                   x.pack(i * DoubleProduct::kColumns, panel.data());
                   x.multiply_rows(0, m, i * DoubleProduct::kColumns, panel.data());
                 }
               });
}

}  // namespace keel::kernels
