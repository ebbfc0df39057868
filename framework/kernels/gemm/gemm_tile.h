// Tiles of a matrix product: as many rows and columns of c as fit in the registers.
//
// An element of c is one chain of multiply-adds over p = 0, 1, ..., regardless of its position in a
// tile and of the tile's size. So the way in which c is divided into tiles never changes a bit.
#pragma once

#include <algorithm>
#include <cstdint>

#include <keel/framework/kernels/vector_register.h>

namespace keel::kernels::internal {

#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int kMostRows = 14;  // of a tile two registers wide: 28 sums, 4 registers left
#else
inline constexpr int kMostRows = 6;
#endif

// The stride between packed columns of op(a): the rows of a tile, rounded up to whole registers.
inline constexpr int64_t kPackedRows = (kMostRows + kWidth - 1) / kWidth * kWidth;

// The arguments of a function that computes one tile.
struct Tile {
  const float* a = nullptr;  // [rows, k], or [k, rows] if transposed; rows are lda apart
  const float* b = nullptr;  // [k, columns]; rows are ldb apart
  float* c = nullptr;        // [rows, columns]; rows are ldc apart
  int64_t lda = 0, ldb = 0, ldc = 0, k = 0;
  float* packed_a = nullptr;    // [k, kPackedRows]; written by functions that pack a
  float* packed_b = nullptr;    // [k, columns]; written by functions that pack b
  bool accumulate = false;      // c += instead of c =
  const float* bias = nullptr;  // of the columns, added to the sums; null: none
  bool relu = false;            // applied after the bias
  // Memory that later tiles need, prefetched during the product; null: none. next_c: rows that will
  // be written, next_step apart; if it is null, nothing is prefetched. ahead: memory that will be
  // read.
  const float* next_c = nullptr;
  int64_t next_step = 0;
  const float* ahead[2] = {};
};
// A function that computes one tile of a fixed size.
using TileFunction = void (*)(const Tile&);

// The sums of a tile, in registers. The loops over rows and registers must be unrolled, because an
// array of registers cannot be indexed at run time.
template <int kRows, int kWide>
struct Sums {
  Vector of[kRows][kWide];

  void begin(const Tile& t) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
      for (int v = 0; v < kWide; ++v) {
        of[i][v] = t.accumulate ? load(t.c + i * t.ldc + v * kWidth) : Vector{};
      }
    }
  }

  // Adds the product of a column of a, whose row i is element(i), and a row of b.
  template <class Element>
  void add(const float* b, const Element& element) {
    Vector y[kWide];
#pragma GCC unroll 16
    for (int v = 0; v < kWide; ++v) y[v] = load(b + v * kWidth);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Vector x = broadcast(element(i));
#pragma GCC unroll 16
      for (int v = 0; v < kWide; ++v) of[i][v] = multiply_add(x, y[v], of[i][v]);
    }
  }

  void end(const Tile& t) {
    if (t.bias != nullptr) {
#pragma GCC unroll 16
      for (int v = 0; v < kWide; ++v) {
        const Vector bias = load(t.bias + v * kWidth);
#pragma GCC unroll 16
        for (int i = 0; i < kRows; ++i) of[i][v] += bias;
      }
    }
    if (t.relu) {
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
        for (int v = 0; v < kWide; ++v) of[i][v] = of[i][v] < Vector{} ? Vector{} : of[i][v];
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
      for (int v = 0; v < kWide; ++v) store(t.c + i * t.ldc + v * kWidth, of[i][v]);
    }
  }
};

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

template <int kRows, int kWide, bool kTransposed, bool kPacksA = false, bool kPacksB = false>
void compute_tile(const Tile& tile) {
  const Tile t = tile;  // a local copy cannot be changed by the stores to c
  Sums<kRows, kWide> sums;
  sums.begin(t);
  Fetches<kRows, kWide> fetches(t);
  const float* b = t.b;
  [[maybe_unused]] Copy<kPackedRows> copy_a(t.packed_a);
  [[maybe_unused]] Copy<kWide * kWidth> copy_b(t.packed_b);
  // Two steps per iteration, because loop counters and addresses compete with the multiply-adds for
  // a port. The steps are written out: GCC needs more addresses, not fewer, if it unrolls the loop
  // itself, and it keeps pointers in memory if a named function object holds them.
  if constexpr (kTransposed) {
    const float* a = t.a;
    int64_t p = 0;
    for (; p + 2 <= t.k; p += 2, a += t.lda, b += t.ldb) {
      if constexpr (kPacksA) copy_a.pass(a, t.lda, kRows);
      if constexpr (kPacksB) copy_b.pass(b, t.ldb);
      sums.add(b, [&](int i) { return a[i]; });
      a += t.lda;
      b += t.ldb;
      asm("" : "+r"(a), "+r"(b));  // otherwise GCC computes both from p
      if constexpr (kPacksA) copy_a.pass(a, t.lda, kRows);
      if constexpr (kPacksB) copy_b.pass(b, t.ldb);
      sums.add(b, [&](int i) { return a[i]; });
      fetches.pass(p + 1);
    }
    if (p < t.k) {
      if constexpr (kPacksA) copy_a.pass(a, t.lda, kRows);
      if constexpr (kPacksB) copy_b.pass(b, t.ldb);
      sums.add(b, [&](int i) { return a[i]; });
    }
  } else {
    // Addresses are a pointer plus 0, 1 or 2 times lda, because one pointer per row would not fit
    // in the registers.
    constexpr int kGroups = (kRows + 2) / 3;
    const float* group[kGroups];
#pragma GCC unroll 16
    for (int g = 0; g < kGroups; ++g) group[g] = t.a + 3 * g * t.lda;
    int64_t p = 0;
    for (; p + 2 <= t.k; p += 2, b += 2 * t.ldb) {
      if constexpr (kPacksB) copy_b.pass(b, t.ldb);
      sums.add(b, [&](int i) { return group[i / 3][i % 3 * t.lda]; });
      if constexpr (kPacksB) copy_b.pass(b + t.ldb, t.ldb);
      sums.add(b + t.ldb, [&](int i) { return group[i / 3][i % 3 * t.lda + 1]; });
#pragma GCC unroll 16
      for (int g = 0; g < kGroups; ++g) {
        group[g] += 2;
        asm("" : "+r"(group[g]));  // otherwise GCC computes all addresses from p
      }
      fetches.pass(p + 1);
    }
    if (p < t.k) {
      if constexpr (kPacksB) copy_b.pass(b, t.ldb);
      sums.add(b, [&](int i) { return group[i / 3][i % 3 * t.lda]; });
    }
  }
  sums.end(t);
}

}  // namespace keel::kernels::internal
