// The work of a tile besides its product: it prefetches memory that later tiles need, and copies
// packed operands.
#pragma once

#include <algorithm>
#include <cstdint>

#include <keel/framework/kernels/gemm/tile.h>

namespace keel::kernels::internal {

// Prefetches, spread over the steps of the product. Issued all at once they would delay the tile's
// own cache misses.
template <int kRows, int kWide>
class Fetches {
 public:
  explicit Fetches(const Tile& t)
      : c_(t.next_c),
        step_(t.next_step),
        row_turn_(t.k < 16 * kRows ? 7 : 15),
        first_(t.ahead[0]),
        second_(t.ahead[1]) {
    if (t.k < kFewSums && c_ != nullptr) {
      for (int i = 0; i < kRows; ++i) fetch_row();
    }
  }

  // Called after step p, for every odd p.
  void pass(int64_t p) {
    if (p % 8 != 7 || c_ == nullptr) return;
    if ((p & row_turn_) == 7) fetch_row();
    // Into the L2 cache, because this memory is needed much later.
    if (first_ != nullptr) {
      __builtin_prefetch(first_, 0, 2);
      first_ += kLine;
    }
    if (second_ != nullptr) {
      __builtin_prefetch(second_, 0, 2);
      second_ += kLine;
    }
  }

 private:
  static constexpr int kLine = 64 / sizeof(float);
  static constexpr int kFewSums = std::max(64, 8 * kRows);  // too few steps to spread the rows over

  void fetch_row() {
#pragma GCC unroll 16
    for (int v = 0; v < kWide; ++v) __builtin_prefetch(c_ + v * kWidth, 1);
    c_ += step_;
  }

  const float* c_;
  const int64_t step_;
  const int64_t row_turn_;  // one row every 8 or 16 steps, so that all arrive by the end
  const float *first_, *second_;
};

// Copies elements that a product reads, kFloats per step, to contiguous memory.
template <int64_t kFloats>
class Copy {
 public:
  explicit Copy(float* to) : to_(to) {}

  // Copies the next kFloats floats, which are `step` after the previous ones. Later steps need only
  // the first `used` floats, so only these are prefetched.
  void pass(const float* from, int64_t step, int64_t used = kFloats) {
    // No hardware prefetcher follows such strides far enough ahead.
    __builtin_prefetch(from + kAhead * step);
    __builtin_prefetch(from + kAhead * step + used - 1);
#pragma GCC unroll 16
    for (int64_t i = 0; i < kFloats; i += kWidth) store(to_ + i, load(from + i));
    to_ += kFloats;
  }

 private:
  static constexpr int64_t kAhead = 8;
  float* to_;
};

}  // namespace keel::kernels::internal
