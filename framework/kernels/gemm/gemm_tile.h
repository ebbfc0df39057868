// Tiles of a matrix product: as many rows and columns of c as fit in the registers.
//
// An element of c is one chain of multiply-adds over p = 0, 1, ..., regardless of its position in a
// tile and of the tile's size. So the way in which c is divided into tiles never changes a bit.
#pragma once

#include <keel/framework/kernels/gemm/tile.h>
#include <keel/framework/kernels/gemm/tile_fetches.h>

namespace keel::kernels::internal {

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

// Computes a tile of kRows rows and kWide registers. With kPacksA or kPacksB, also packs that
// operand.
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
