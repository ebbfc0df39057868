#include <keel/framework/kernels/gemm/dense_gradient.h>

#include <algorithm>
#include <vector>

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/gemm/gemm_dispatch.h>
#include <keel/framework/kernels/gemm/gemm_panels.h>
#include <keel/framework/kernels/scratch.h>

namespace keel::kernels {
namespace {

using internal::blocks_of;
using internal::kPanel;
using internal::kWidth;
using internal::PanelProduct;
using internal::Strip;

// Rows per piece: the operands of a piece and a panel stay in the L2 cache.
constexpr int64_t kPieceRows = 192;
// Rows per float sum of the bias gradient. These sums are added in double.
constexpr int64_t kRowsPerSum = 64;
// Rows that are masked at once: each sum is loaded and stored once for all of them.
constexpr int64_t kRowsMasked = 4;
static_assert(kPieceRows % kRowsPerSum == 0 && kRowsPerSum % kRowsMasked == 0);
// Rows of w^T per packing task.
constexpr int64_t kFewPanels = 1 << 11;

class DenseGradientJob {
 public:
  explicit DenseGradientJob(const DenseGradientArgs& args)
      : args_(args),
        // Both products must qualify: a gradient must not depend on whether the other one is
        // requested.
        in_tiles_(internal::multiplies_in_tiles(args.precision, args.rows, args.in, args.out) &&
                  internal::multiplies_in_tiles(args.precision, args.in, args.out, args.rows)),
        in_place_(parallel_runs_in_place() && args.out >= kWidth && !in_tiles_),
        // Avoid a stride that is a power of two, which would map all rows to the same cache sets.
        step_(in_place_ ? args.out + kWidth : args.out),
        // Packing may pay because x is read once for each panel, column by column.
        packs_x_(in_place_ && args.dw != nullptr &&
                 internal::pays_to_pack_tiles(args.in, args.out, true)),
        panels_(makes_dx_by_piece() ? internal::panels_size(args.out, args.in) : 0),
        masked_(args.y == nullptr ? 0 : (in_place_ ? kPieceRows : args.rows) * step_),
        sums_(args.db == nullptr ? 0 : blocks_of(args.rows, kRowsPerSum) * args.out) {}

  void run() {
    if (makes_dx_by_piece()) pack_kernel();
    const int64_t pieces = blocks_of(args_.rows, kPieceRows);
    if (in_place_) {
      const Scratch<float> panel(kPieceRows * kPanel);
      const Scratch<float> tiles(packs_x_ ? internal::tiles_size(args_.in, kPieceRows) : 0);
      for (int64_t p = 0; p < pieces; ++p) {
        start(p * kPieceRows);
        if (args_.dw != nullptr) add_to_kernel(p * kPieceRows, panel.data(), tiles.data());
      }
      if (pieces == 0 && args_.dw != nullptr) std::fill_n(args_.dw, args_.in * args_.out, 0.0F);
    } else {
      parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) start(p * kPieceRows);
      });
      const float* const all = args_.y == nullptr ? args_.dy : masked_.data();
      const auto precision = in_tiles_ ? args_.precision : MatmulPrecision::kHighest;
      if (args_.dx != nullptr && in_tiles_) {
        gemm(all, args_.w, args_.dx, args_.rows, args_.in, args_.out, false, true, {}, precision);
      }
      if (args_.dw != nullptr) {
        gemm(args_.x, all, args_.dw, args_.in, args_.out, args_.rows, true, false, {}, precision);
      }
    }
    if (args_.db != nullptr) add_up();
  }

 private:
  bool makes_dx_by_piece() const { return args_.dx != nullptr && !in_tiles_; }
  int64_t rows_from(int64_t row) const { return std::min(kPieceRows, args_.rows - row); }
  // The gradient of x w + b from row `row` of the piece on. Its rows are dz_step() apart.
  const float* dz(int64_t row) const {
    if (args_.y == nullptr) return args_.dy + row * args_.out;
    return masked_.data() + (in_place_ ? 0 : row * step_);
  }
  int64_t dz_step() const { return args_.y == nullptr ? args_.out : step_; }

  void pack_kernel() const {
    const int64_t panels = blocks_of(args_.in, kPanel);
    const int64_t grain = std::max<int64_t>(1, kFewPanels / std::max<int64_t>(args_.out, 1));
    parallel_for(panels, grain, [&](int64_t begin, int64_t end) {
      const int64_t from = begin * kPanel;
      internal::pack(args_.w + from * args_.out, args_.out, true, args_.out,
                     std::min(args_.in, end * kPanel) - from, panels_.data() + from * args_.out);
    });
  }

  // Computes dz of a piece, its bias sums, and dx.
  void start(int64_t row) const {
    const int64_t rows = rows_from(row);
    if (args_.y != nullptr || args_.db != nullptr) {
      for (int64_t r = 0; r < rows; r += kRowsPerSum) {
        const int64_t count = std::min(kRowsPerSum, rows - r);
        if (args_.y == nullptr) {
          mask<false>(row + r, r, count);
        } else {
          mask<true>(row + r, r, count);
        }
      }
    }
    if (!makes_dx_by_piece()) return;
    PanelProduct{.a = dz(row),
                 .lda = dz_step(),
                 .transpose_a = false,
                 .panels = panels_.data(),
                 .panel_depth = args_.out,
                 .from = 0,
                 .depth = args_.out,
                 .c = args_.dx + row * args_.in,
                 .ldc = args_.in,
                 .rows = rows,
                 .columns = args_.in,
                 .accumulate = false,
                 .next = in_place_ && args_.dw != nullptr
                             ? internal::PrefetchRange{args_.x + row * args_.in, rows * args_.in}
                             : piece_of(args_.dy, row + rows)}
        .compute();
  }

  // The operands from which dz of the piece at `row` will be computed.
  internal::PrefetchRange piece_of(const float* outputs, int64_t row) const {
    if (outputs == nullptr || row >= args_.rows) return {};
    return {.from = outputs + row * args_.out, .floats = rows_from(row) * args_.out};
  }

  template <bool kRelu>
  void mask(int64_t row, int64_t row_of_piece, int64_t rows) const {
    float* sums = nullptr;
    if (args_.db != nullptr) {
      sums = sums_.data() + row / kRowsPerSum * args_.out;
      std::fill_n(sums, args_.out, 0.0F);
    }
    const int64_t to = in_place_ ? row_of_piece : row;
    int64_t r = 0;
    for (; r + kRowsMasked <= rows; r += kRowsMasked) {
      mask_rows<kRelu, kRowsMasked>(row + r, to + r, sums);
    }
    for (; r < rows; ++r) mask_rows<kRelu, 1>(row + r, to + r, sums);
  }

  template <bool kRelu, int64_t kRows>
  void mask_rows(int64_t row, int64_t row_of_mask, float* __restrict sums) const {
    const int64_t n = args_.out;
    const float *y = kRelu ? args_.y + row * n : nullptr, *dy = args_.dy + row * n;
    float* __restrict to = kRelu ? masked_.data() + row_of_mask * step_ : nullptr;
    int64_t j = 0;
    for (; j + kWidth <= n; j += kWidth) {
      internal::Vector sum = sums == nullptr ? internal::Vector{} : internal::load(sums + j);
#pragma GCC unroll 16
      for (int64_t r = 0; r < kRows; ++r) {
        internal::Vector g = internal::load(dy + r * n + j);
        if (kRelu) {
          g = internal::load(y + r * n + j) > internal::Vector{} ? g : internal::Vector{};
          internal::store(to + r * step_ + j, g);
        }
        sum += g;
      }
      if (sums != nullptr) internal::store(sums + j, sum);
    }
    for (; j < n; ++j) {
      for (int64_t r = 0; r < kRows; ++r) {
        const float g = !kRelu || y[r * n + j] > 0 ? dy[r * n + j] : 0;
        if (kRelu) to[r * step_ + j] = g;
        if (sums != nullptr) sums[j] += g;
      }
    }
  }

  // Adds x^T dz of a piece to dw, one panel of dz at a time. Prefetches the beginning of the next
  // piece.
  void add_to_kernel(int64_t row, float* panel, float* tiles) const {
    const int64_t rows = rows_from(row);
    const float* x = args_.x + row * args_.in;
    const internal::PrefetchRange dy = piece_of(args_.dy, row + rows),
                                  y = piece_of(args_.y, row + rows);
    for (int64_t j = 0; j < args_.out; j += kPanel) {
      const int64_t columns = std::min(kPanel, args_.out - j);
      Strip strip = {
          .tile = {.b = dz(row) + j, .ldb = dz_step(), .k = rows, .accumulate = row > 0},
          .a = x,
          .lda = args_.in,
          .transpose_a = true,
          .c = args_.dw + j,
          .ldc = args_.out,
          .rows = args_.in,
          .columns = columns,
          .wide = columns > kWidth ? 2 : 1,
          .tiles = packs_x_ ? tiles : nullptr,
          .readable = args_.in,
          .packs = j == 0,
          .panel = panel,
          .next_c = args_.dw + std::min(j + kPanel, args_.out - 1),
          .ahead = {dy.parts(j, j + columns, args_.out), y.parts(j, j + columns, args_.out)}};
      strip.compute();
    }
  }

  // Adds the block sums in double, in order, so db does not depend on the number of workers.
  void add_up() const {
    std::vector<double> all(args_.out);
    const float* part = sums_.data();
    for (int64_t block = 0; block < blocks_of(args_.rows, kRowsPerSum); ++block) {
      for (int64_t j = 0; j < args_.out; ++j) all[j] += static_cast<double>(*part++);
    }
    std::ranges::transform(all, args_.db, [](double x) { return static_cast<float>(x); });
  }

  const DenseGradientArgs& args_;
  const bool in_tiles_;  // all rows at once, by gemm()
  const bool in_place_;
  const int64_t step_;
  const bool packs_x_;
  const Scratch<float> panels_, masked_, sums_;
};

}  // namespace

void dense_gradient(const DenseGradientArgs& args) { DenseGradientJob(args).run(); }

}  // namespace keel::kernels
