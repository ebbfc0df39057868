#include <keel/framework/kernels/gemm/packed_gemm.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <keel/framework/base/internal/allocator.h>
#include <keel/framework/kernels/gemm/gemm_tile_functions.h>

namespace keel::kernels {
namespace {

using internal::kMostRows;
using internal::kWidth;
using internal::Vector;

constexpr int64_t kPanel = 2 * kWidth;
// With at most this many rows, registers are left for several panels at once.
constexpr int64_t kFewRows = kMostRows / 2;
// With few rows of x the product waits for the weights, so they are prefetched: hardware
// prefetchers do not read beyond the end of a page.
constexpr int64_t kAhead = 16;

// If x has one row, factors that are zero are skipped; relu makes about half of them zero. If all
// weights are finite, a skipped term changes no bit except the sign of a sum that has underflowed
// to zero. The longest row for which skipping is tried:
constexpr int64_t kMostSkipped = 4096;
// The largest share of nonzero factors for which the less regular reads pay.
constexpr double kManyFactors = 0.8;

int64_t rounded_up(int64_t n) { return (n + kWidth - 1) / kWidth * kWidth; }

// The arguments of few_rows().
struct FewRows {
  const float* x;
  int64_t x_stride, k;
  const float* weights;  // weights of the first panel; each panel has k * kPanel floats
  const float* bias;     // null: none
  float* y;
  int64_t y_stride;
  bool relu;
  // If zero factors are skipped: the positions of the others, followed by kAhead more entries.
  const uint16_t* factors;
  int64_t num_factors;
};

// Computes the product of kRows rows and kPanels panels, whose rows are read side by side. Each sum
// is one chain, as in tiles.
template <int kRows, int kPanels, bool kSkips = false>
void few_rows(const FewRows& given) {
  const FewRows f = given;
  Vector sums[kRows][2 * kPanels] = {};
  const int64_t count = kSkips ? f.num_factors : f.k;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t p = kSkips ? f.factors[i] : i;
    const int64_t ahead = kSkips ? f.factors[i + kAhead] - p : kAhead;
    const float* const x = f.x + p;
    const float* const w = f.weights + p * kPanel;
#pragma GCC unroll 16
    for (int v = 0; v < 2 * kPanels; ++v) {
      const float* const part = w + v / 2 * f.k * kPanel + v % 2 * kWidth;
      __builtin_prefetch(part + ahead * kPanel);
      const Vector weight = internal::load(part);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Vector factor = internal::broadcast(x[r * f.x_stride]);
        sums[r][v] = internal::multiply_add(factor, weight, sums[r][v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int v = 0; v < 2 * kPanels; ++v) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      Vector sum = sums[r][v];
      if (f.bias != nullptr) sum += internal::load(f.bias + v * kWidth);
      if (f.relu) sum = sum < Vector{} ? Vector{} : sum;
      internal::store(f.y + r * f.y_stride + v * kWidth, sum);
    }
  }
}

template <int kPanels, int... kRow>
constexpr auto few_rows_of(std::integer_sequence<int, kRow...>) {
  return std::array<void (*)(const FewRows&), sizeof...(kRow)>{&few_rows<kRow + 1, kPanels>...};
}
constexpr int kFourPanelRows = kMostRows / 4;
constexpr auto kTwoPanels = few_rows_of<2>(std::make_integer_sequence<int, kFewRows>());
constexpr std::array<void (*)(const FewRows&), 2> kSkipping = {&few_rows<1, 2, true>,
                                                               &few_rows<1, 4, true>};
constexpr auto kFourPanels = few_rows_of<4>(std::make_integer_sequence<int, kFourPanelRows>());

}  // namespace

struct PackedMatrix::Rows {
  const float* x;
  int64_t x_stride, count;
  float* y;
  int64_t y_stride;
  bool relu;
  std::span<const uint16_t> factors;  // for a single row; empty: all factors
};

void PackedMatrix::Free::operator()(float* block) const { deallocate(block, bytes); }

PackedMatrix::Floats PackedMatrix::zeros(int64_t count) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  auto* const block = static_cast<float*>(allocate(bytes));
  std::fill_n(block, count, 0.0F);
  return {block, Free(bytes)};
}

PackedMatrix::PackedMatrix(const float* b, const float* bias, int64_t k, int64_t n)
    : k_(k),
      n_(n),
      has_bias_(bias != nullptr),
      is_finite_(std::all_of(b, b + k * n, [](float x) { return std::isfinite(x); })),
      bias_(zeros(rounded_up(n))),
      weights_(zeros(k * (n == 1 ? 1 : rounded_up(n)))) {
  if (has_bias_) std::copy_n(bias, n, bias_.get());
  float* out = weights_.get();
  if (n == 1) {
    std::copy_n(b, k, out);
    return;
  }
  for (int64_t first = 0; first < n; first += kPanel) {
    const int64_t columns = std::min(kPanel, n - first), width = rounded_up(columns);
    for (int64_t p = 0; p < k; ++p, out += width) std::copy_n(b + p * n + first, columns, out);
  }
}

void PackedMatrix::multiply(const float* x, int64_t x_stride, int64_t m, float* y, int64_t y_stride,
                            bool relu) const {
  if (n_ == 1) {
    for (int64_t i = 0; i < m; ++i) {
      float sum = internal::dot(x + i * x_stride, weights_.get(), k_);
      if (has_bias_) sum += bias_[0];
      y[i * y_stride] = relu && sum < 0 ? 0 : sum;
    }
    return;
  }
  if (m == 0) return;
  std::array<uint16_t, kMostSkipped + kAhead> factors;
  const Rows rows = {.x = x,
                     .x_stride = x_stride,
                     .count = m,
                     .y = y,
                     .y_stride = y_stride,
                     .relu = relu,
                     .factors = m == 1 && is_finite_ && k_ <= kMostSkipped
                                    ? factors_of(x, factors.data())
                                    : std::span<const uint16_t>()};
  int64_t first = 0;
  while (first < n_) {
    const int64_t done = multiply_panels(rows, first);
    if (done == 0) multiply_panel(rows, first);
    first += std::max(done, kPanel);
  }
}

// Returns the positions of the nonzero factors, followed by kAhead copies of the last one. Returns
// an empty span if there are so many that skipping the others does not pay.
std::span<const uint16_t> PackedMatrix::factors_of(const float* x, uint16_t* numbers) const {
  int64_t n = 0;
  for (int64_t p = 0; p < k_; ++p) {
    numbers[n] = static_cast<uint16_t>(p);
    n += x[p] != 0 ? 1 : 0;
  }
  if (n == 0 || static_cast<double>(n) > kManyFactors * static_cast<double>(k_)) return {};
  std::fill_n(numbers + n, kAhead, numbers[n - 1]);
  return {numbers, static_cast<size_t>(n)};
}

// Multiplies a few rows by several panels, if there are that many. Returns the number of columns
// done.
int64_t PackedMatrix::multiply_panels(const Rows& rows, int64_t first) const {
  const int64_t whole = (n_ - first) / kPanel;
  if (rows.count > kFewRows || whole < 2) return 0;
  const bool four = whole >= 4 && rows.count <= kFourPanelRows;
  const FewRows few = {.x = rows.x,
                       .x_stride = rows.x_stride,
                       .k = k_,
                       .weights = weights_.get() + first * k_,
                       .bias = has_bias_ ? bias_.get() + first : nullptr,
                       .y = rows.y + first,
                       .y_stride = rows.y_stride,
                       .relu = rows.relu,
                       .factors = rows.factors.data(),
                       .num_factors = std::ssize(rows.factors)};
  if (!rows.factors.empty()) {
    kSkipping[four ? 1 : 0](few);
    return (four ? 4 : 2) * kPanel;
  }
  (four ? kFourPanels[rows.count - 1] : kTwoPanels[rows.count - 1])(few);
  return (four ? 4 : 2) * kPanel;
}

void PackedMatrix::multiply_panel(const Rows& rows, int64_t first) const {
  const int64_t columns = std::min(kPanel, n_ - first), width = rounded_up(columns);
  const bool whole = columns == width;
  alignas(64) float padded[kMostRows * kPanel];  // a tile of which y has only some columns
  const int64_t tiles = (rows.count + kMostRows - 1) / kMostRows;
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t from = rows.count * t / tiles, count = rows.count * (t + 1) / tiles - from;
    float* const y = rows.y + from * rows.y_stride + first;
    internal::tile_function(count, width / kWidth,
                            false)({.a = rows.x + from * rows.x_stride,
                                    .b = weights_.get() + first * k_,
                                    .c = whole ? y : padded,
                                    .lda = rows.x_stride,
                                    .ldb = width,
                                    .ldc = whole ? rows.y_stride : width,
                                    .k = k_,
                                    .bias = has_bias_ ? bias_.get() + first : nullptr,
                                    .relu = rows.relu});
    if (whole) continue;
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(padded + i * width, columns, y + i * rows.y_stride);
    }
  }
}

}  // namespace keel::kernels
