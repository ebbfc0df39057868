#include "framework/kernels/gemm.h"

#include <Eigen/Core>
#include <algorithm>

#include "framework/allocator.h"
#include "framework/kernels/gemm_tile.h"
#include "framework/parallel.h"

namespace keel::kernels {
namespace {

using internal::kMostRows;
using internal::kWidth;
using internal::Tile;
using internal::Vector;

constexpr int64_t kBlockRows = 256;     // of c; what they need of a stays in the L2 cache
constexpr int64_t kBlockDepth = 512;    // sums go on from c after as many; a panel of b fits in L2
constexpr int64_t kPanel = 2 * kWidth;  // columns of b that are brought to another layout at once
constexpr int64_t kAhead = 8;           // rows of b fetched before they are brought there
constexpr int64_t kGroup = 4 * kPanel;  // columns that are brought there at once
constexpr int64_t kSmallPanels = 1 << 13;  // elements of b that stay in the L1 cache
constexpr int64_t kSharedWork = 1 << 22;   // multiplications from which workers share a product

int64_t blocks_of(int64_t n, int64_t most) { return (n + most - 1) / most; }

// Rows that are a multiple of 4 KiB apart fall into the same few sets of a cache.
bool collides(int64_t step) { return step % 1024 == 0; }

class Scratch {
 public:
  explicit Scratch(int64_t floats)
      : bytes_(static_cast<size_t>(floats) * sizeof(float)),
        data_(floats == 0 ? nullptr : static_cast<float*>(allocate(bytes_))) {}
  ~Scratch() {
    if (data_ != nullptr) deallocate(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  float* data() const { return data_; }

 private:
  const size_t bytes_;
  float* const data_;
};

struct Product {
  const float *a, *b;
  float* c;
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  GemmEpilogue epilogue;

  int64_t lda() const { return transpose_a ? m : k; }
  int64_t ldb() const { return transpose_b ? k : n; }
};

// Panels of kPanel columns, the last perhaps of one register, one after the other: columns
// [first, last) of rows [from, from + depth) of op(b), zeros after the last column.
void pack(const Product& x, int64_t from, int64_t depth, int64_t first, int64_t last, float* to) {
  if (!x.transpose_b) {
    // Row by row, as memory has it.
    for (int64_t p = 0; p < depth; ++p) {
      const float* row = x.b + (from + p) * x.n;
      int64_t j = first;
      for (float* panel = to + p * kPanel; j + kPanel <= last; j += kPanel) {
        __builtin_prefetch(row + kAhead * x.n + j);
        __builtin_prefetch(row + kAhead * x.n + j + kWidth);
        internal::store(panel, internal::load(row + j));
        internal::store(panel + kWidth, internal::load(row + j + kWidth));
        panel += depth * kPanel;
      }
      if (j == last) continue;
      const int64_t width = last - j > kWidth ? kPanel : kWidth;
      float* end = std::copy(row + j, row + last, to + (j - first) * depth + p * width);
      std::fill_n(end, width - (last - j), 0.0F);
    }
    return;
  }
  for (int64_t j = first; j < last; j += kWidth) {
    const int64_t start = (j - first) / kPanel * kPanel + first;  // of the panel
    const int64_t width = last - start > kWidth ? kPanel : kWidth;
    float* panel = to + (start - first) * depth + (j - start);
    const float* columns = x.b + j * x.k + from;
    const int64_t count = std::min<int64_t>(kWidth, last - j);
    int64_t p = 0;
    if (count == kWidth) {
      for (; p + kWidth <= depth; p += kWidth) {
        internal::transpose_square(columns + p, x.k, panel + p * width, width);
      }
    }
    for (; p < depth; ++p) {
      for (int64_t q = 0; q < kWidth; ++q) {
        panel[p * width + q] = q < count ? columns[q * x.k + p] : 0;
      }
    }
  }
}

// Whether rows of a are better copied than read where they are.
bool spreads_rows(const Product& x, int64_t rows) {
  return !x.transpose_a && collides(x.k) && rows > 8 && x.n >= 128;
}

// Rows [begin, end) of some columns of c: tile.b and what belongs to the columns is set; `columns`
// of `wide` registers count.
struct Strip {
  Tile tile;
  const float* a;
  int64_t lda;
  bool transpose_a;
  float* c;
  int64_t ldc, rows, columns, wide;

  void compute() {
    const int64_t most = wide <= 2 ? kMostRows : 2 * kMostRows / wide;
    const int64_t tiles = blocks_of(rows, most);
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t from = rows * t / tiles;
      const int64_t count = rows * (t + 1) / tiles - from;
      tile.a = a + (transpose_a ? from : from * lda);
      tile.lda = lda;
      const auto function = internal::tile_function(count, wide, transpose_a);
      if (columns == wide * kWidth) {
        tile.c = c + from * ldc;
        tile.ldc = ldc;
        function(tile);
      } else {
        compute_narrow(function, c + from * ldc, count);
      }
    }
  }

 private:
  // By way of a tile of full width.
  void compute_narrow(internal::TileFunction function, float* to, int64_t count) {
    alignas(64) float full[kMostRows * kPanel];
    tile.c = full;
    tile.ldc = wide * kWidth;
    if (tile.accumulate) {
      for (int64_t i = 0; i < count; ++i) std::copy_n(to + i * ldc, columns, full + i * tile.ldc);
    }
    function(tile);
    for (int64_t i = 0; i < count; ++i) std::copy_n(full + i * tile.ldc, columns, to + i * ldc);
  }
};

// How many registers wide the next tiles are: few rows leave registers for more columns.
int64_t tile_width(int64_t rows, int64_t columns, bool packed) {
  if (!packed && kMostRows * 2 / internal::kWidest >= rows &&
      columns >= internal::kWidest * kWidth) {
    return internal::kWidest;
  }
  if (!packed && kMostRows / 2 >= rows && columns >= 4 * kWidth) return 4;
  return columns > kWidth ? 2 : 1;
}

// The part of c in rows [row, row + rows) and columns [first, last).
struct Block {
  const Product& x;
  int64_t row, rows, first, last;
  // b is brought to panels: always where it is transposed, and where reading it again for every
  // tile of rows would miss the caches.
  bool packs = x.transpose_b || (collides(x.ldb()) && rows >= 4 * kMostRows);
  bool spreads = spreads_rows(x, rows);

  void compute() const {
    const int64_t slices = std::max<int64_t>(1, blocks_of(x.k, kBlockDepth));
    const int64_t depth = blocks_of(blocks_of(x.k, slices), kWidth) * kWidth;
    const int64_t group = packs ? kGroup : kPanel;
    const Scratch panels(std::min(depth, x.k) * group);
    int64_t from = 0;
    do {
      compute_slice(from, std::min(depth, x.k - from), panels.data());
      from += depth;
    } while (from < x.k);
  }

 private:
  // What the rows [from, from + depth) of b contribute.
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
    const Scratch spread(spreads ? rows * step : 0);
    if (spreads) {
      for (int64_t i = 0; i < rows; ++i) {
        std::copy_n(strip.a + i * strip.lda, depth, spread.data() + i * step);
      }
      strip.a = spread.data();
      strip.lda = step;
    }
    int64_t packed = first;  // columns before this one are in panels
    float* panel = panels;
    for (int64_t j = first; j < last; j += strip.columns) {
      strip.wide = tile_width(rows, last - j, packs);
      strip.columns = std::min(strip.wide * kWidth, last - j);
      const int64_t width = strip.wide * kWidth;
      strip.tile = {.b = x.b + from * x.n + j, .ldb = x.n, .k = depth, .accumulate = from > 0};
      if (packs || strip.columns < width) {
        if (j >= packed) {
          packed = packs ? std::min(last, j + kGroup) : last;
          pack(x, from, depth, j, packed, panels);
          panel = panels;
        }
        strip.tile.b = panel;
        strip.tile.ldb = width;
        panel += depth * width;
      }
      finish(from + depth == x.k, j, strip);
    }
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

// Cut by shape alone. Rows first, as then each worker reads its own of a; columns or smaller
// pieces if that makes one piece.
void multiply(const Product& x) {
  int64_t row_blocks = blocks_of(x.m, x.transpose_a || x.transpose_b ? 2 * kBlockRows : kBlockRows);
  int64_t column_blocks = 1;
  if (x.k * x.n <= kSmallPanels) {
    row_blocks = blocks_of(x.m, 4 * kMostRows);
  } else if (row_blocks == 1 && x.m * x.n * std::max<int64_t>(x.k, 1) >= kSharedWork) {
    if (!spreads_rows(x, x.m)) column_blocks = blocks_of(x.n, kGroup);
    if (column_blocks == 1) row_blocks = blocks_of(x.m, kBlockRows / 2);
  }
  parallel_for(row_blocks * column_blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t i = block / column_blocks, j = block % column_blocks * kGroup;
      const int64_t row = x.m * i / row_blocks;
      Block{.x = x,
            .row = row,
            .rows = x.m * (i + 1) / row_blocks - row,
            .first = j,
            .last = column_blocks == 1 ? x.n : std::min(x.n, j + kGroup)}
          .compute();
    }
  });
}

float finish(float sum, const GemmEpilogue& epilogue, int64_t column) {
  if (epilogue.bias != nullptr) sum += epilogue.bias[column];
  return epilogue.relu && sum < 0 ? 0 : sum;
}

// out[i] = rows[i] . vector; the bias of out[i] is bias[i * bias_step].
void multiply_vector(const float* rows, const float* vector, float* out, int64_t count, int64_t k,
                     const GemmEpilogue& epilogue, int64_t bias_step) {
  const int64_t grain = std::max<int64_t>(1, kSharedWork / 8 / std::max<int64_t>(k, 1));
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      out[i] = finish(internal::dot(rows + i * k, vector, k), epilogue, i * bias_step);
    }
  });
}

// Gradients are checked in double; training never multiplies in it.
void multiply_block(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k,
                    int64_t lda, int64_t ldb, bool transpose_a, bool transpose_b) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using View = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
  const View x(a, transpose_a ? k : m, transpose_a ? m : k, Eigen::OuterStride<>(lda));
  const View y(b, transpose_b ? n : k, transpose_b ? k : n, Eigen::OuterStride<>(ldb));
  Eigen::Map<Matrix> z(c, m, n);
  if (transpose_a && transpose_b) {
    z.noalias() = x.transpose() * y.transpose();
  } else if (transpose_a) {
    z.noalias() = x.transpose() * y;
  } else if (transpose_b) {
    z.noalias() = x * y.transpose();
  } else {
    z.noalias() = x * y;
  }
}

}  // namespace

void gemm(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k,
          bool transpose_a, bool transpose_b, const GemmEpilogue& epilogue) {
  if (m == 0 || n == 0) return;
  const bool has_epilogue = epilogue.bias != nullptr || epilogue.relu;
  if (k == 1) transpose_b = false;  // a vector either way
  if (n == 1 && !transpose_a) return multiply_vector(a, b, c, m, k, epilogue, 0);
  if (n == 1 && !has_epilogue) {
    return multiply({b, a, c, 1, m, k, false, false, {}});  // the row that is c's only column
  }
  if (m == 1 && transpose_b) return multiply_vector(b, a, c, n, k, epilogue, 1);
  multiply({a, b, c, m, n, k, transpose_a, transpose_b, epilogue});
}

void gemm(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k,
          bool transpose_a, bool transpose_b) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    std::fill_n(c, m * n, 0.0);
    return;
  }
  const int64_t lda = transpose_a ? m : k;
  const int64_t ldb = transpose_b ? k : n;
  parallel_for(m, kBlockRows, [&](int64_t begin, int64_t end) {
    multiply_block(a + (transpose_a ? begin : begin * lda), b, c + begin * n, end - begin, n, k,
                   lda, ldb, transpose_a, transpose_b);
  });
}

}  // namespace keel::kernels
