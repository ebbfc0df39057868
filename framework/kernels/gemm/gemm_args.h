// What gemm and gemm_bf16 have in common: the product they are asked for, and how it is cut.
#pragma once

#include <cstdint>

#include <keel/framework/kernels/gemm/gemm.h>

namespace keel::kernels::internal {

// The arguments of gemm().
struct Product {
  const float *a, *b;
  float* c;
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  GemmEpilogue epilogue;

  // From a row of a, or of b, to the next.
  int64_t lda() const { return transpose_a ? m : k; }
  int64_t ldb() const { return transpose_b ? k : n; }
};

inline int64_t blocks_of(int64_t n, int64_t most) { return (n + most - 1) / most; }

// What becomes of the sum that is an element of a column of c.
inline float finish(float sum, const GemmEpilogue& epilogue, int64_t column) {
  if (epilogue.bias != nullptr) sum += epilogue.bias[column];
  return epilogue.relu && sum < 0 ? 0 : sum;
}

// True if there is nothing to sum: then c is done, and operands may have no memory.
inline bool finish_empty_sums(const Product& x) {
  if (x.k != 0) return false;
  for (int64_t i = 0; i < x.m * x.n; ++i) x.c[i] = finish(0, x.epilogue, i % x.n);
  return true;
}

}  // namespace keel::kernels::internal
