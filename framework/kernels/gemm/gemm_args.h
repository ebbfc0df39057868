// The arguments and helpers that the implementations of gemm and gemm_bf16 share.
#pragma once

#include <cstdint>

#include <keel/framework/kernels/gemm/gemm.h>

namespace keel::kernels::internal {

// The arguments of gemm(). k, the depth, is the number of terms of each sum.
struct Product {
  const float *a, *b;
  float* c;
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  GemmEpilogue epilogue;

  // The stride between the rows of a and of b in memory.
  int64_t lda() const { return transpose_a ? m : k; }
  int64_t ldb() const { return transpose_b ? k : n; }
};

// Returns the number of blocks of at most `most` elements that n elements need.
inline int64_t blocks_of(int64_t n, int64_t most) { return (n + most - 1) / most; }

// Applies the epilogue to the sum of an element in this column of c.
inline float finish(float sum, const GemmEpilogue& epilogue, int64_t column) {
  if (epilogue.bias != nullptr) sum += epilogue.bias[column];
  return epilogue.relu && sum < 0 ? 0 : sum;
}

// If k == 0, stores the epilogue of empty sums in c and returns true; a and b may then be null.
// Returns false otherwise.
inline bool finish_empty_sums(const Product& x) {
  if (x.k != 0) return false;
  for (int64_t i = 0; i < x.m * x.n; ++i) x.c[i] = finish(0, x.epilogue, i % x.n);
  return true;
}

}  // namespace keel::kernels::internal
