// Products of a matrix and a vector in bfloat16, by dot products.
// Included by the two sources of gemm_bf16_vectors.h only.
#pragma once

#include <cstdint>

#include <keel/framework/kernels/gemm/bf16_packing.h>
#include <keel/framework/kernels/scratch.h>

namespace keel::kernels::internal {
inline namespace KEEL_BF16_NAMESPACE {
namespace bf16 {

// Pairs in a row of sums: the widest register of any target, so the bits are the same on all
// machines.
constexpr int64_t kRowPairs = 16;

// Returns x . y. The pairs of y are packed and padded with zeros to a whole row. There are four
// rows of sums, fixed by k.
inline float dot(const float* x, const float* y, int64_t k) {
  constexpr int kRows = 4;
  constexpr int kRowVectors = kRowPairs / kWidth;
  Vector sums[kRows * kRowVectors] = {};
  const auto add_row = [&](int row, int64_t p, const auto& pairs_at) {
#pragma GCC unroll 4
    for (int v = 0; v < kRowVectors; ++v) {
      const int64_t at = p + v * kWidth;
      Vector& sum = sums[row * kRowVectors + v];
      sum = multiply_add(pairs_at(at), load_pairs(y + at), sum);
    }
  };
  int64_t p = 0;
  for (; 2 * (p + kRows * kRowPairs) <= k; p += kRows * kRowPairs) {
#pragma GCC unroll 4
    for (int row = 0; row < kRows; ++row) {
      add_row(row, p + row * kRowPairs,
              [&](int64_t at) { return adjacent(load(x + 2 * at), load(x + 2 * at + kWidth)); });
    }
  }
  for (; 2 * p < k; p += kRowPairs) {
    add_row(0, p, [&](int64_t at) { return pairs_of_row(x, at, k); });
  }
  float row[kRowPairs];
#pragma GCC unroll 4
  for (int v = 0; v < kRowVectors; ++v) {
    store(row + v * kWidth, (sums[v] + sums[v + kRowVectors]) +
                                (sums[v + 2 * kRowVectors] + sums[v + 3 * kRowVectors]));
  }
  float sum = 0;
  for (const float part : row) sum += part;
  return sum;
}

inline void multiply_vector(const Product& x) {
  const int64_t pairs = blocks_of(x.k, 2 * kRowPairs) * kRowPairs;
  const Scratch<float> y(pairs);
  for (int64_t p = 0; p < pairs; p += kWidth) {
    store_pairs(y.data() + p, pairs_of_row(x.b, p, x.k));
  }
  const int64_t grain = std::max<int64_t>(1, 8 * kFewElements / std::max<int64_t>(x.k, 1));
  parallel_for_flushing(x.m, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      x.c[i] = finish(dot(x.a + i * x.k, y.data(), x.k), x.epilogue, 0);
    }
  });
}

}  // namespace bf16
}  // namespace KEEL_BF16_NAMESPACE
}  // namespace keel::kernels::internal
