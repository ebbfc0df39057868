// Packs the operands of a bfloat16 product as pairs, in the order in which tiles read them.
// Included by the two sources of gemm_bf16_vectors.h only.
#pragma once

#include <algorithm>
#include <cstdint>

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/gemm/bf16_vector_tiles.h>
#include <keel/framework/kernels/gemm/gemm_args.h>
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

}  // namespace bf16
}  // namespace KEEL_BF16_NAMESPACE
}  // namespace keel::kernels::internal
