#include "framework/kernels/gemm.h"

#include <Eigen/Core>
#include <algorithm>
#include <dnnl.hpp>
#include <omp.h>

#include "framework/errors.h"
#include "framework/parallel.h"

namespace keel::kernels {
namespace {

// Rows of c per block: enough for the library to run near its best, few enough for two workers to
// share the products of a training step.
constexpr int64_t kRowsPerBlock = 256;

// oneDNN would start OpenMP threads of its own, and its sums would depend on their number.
void keep_to_this_thread() {
  thread_local bool done = false;
  if (!done) omp_set_num_threads(1);
  done = true;
}

void gemm_block(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k,
                int64_t lda, int64_t ldb, bool transpose_a, bool transpose_b) {
  keep_to_this_thread();
  const dnnl_status_t status = dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k,
                                          1.0F, a, lda, b, ldb, 0.0F, c, n);
  if (status != dnnl_success)
    throw RuntimeError("gemm: oneDNN refused the product, status ", status);
}

// Gradients are checked in double; training never multiplies in it.
void gemm_block(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k,
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

template <class T>
void gemm_blocks(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, bool transpose_a,
                 bool transpose_b) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    std::fill_n(c, m * n, T{0});
    return;
  }
  const int64_t lda = transpose_a ? m : k;
  const int64_t ldb = transpose_b ? k : n;
  parallel_for(m, kRowsPerBlock, [&](int64_t begin, int64_t end) {
    gemm_block(a + (transpose_a ? begin : begin * lda), b, c + begin * n, end - begin, n, k, lda,
               ldb, transpose_a, transpose_b);
  });
}

}  // namespace

void gemm(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k,
          bool transpose_a, bool transpose_b) {
  gemm_blocks(a, b, c, m, n, k, transpose_a, transpose_b);
}

void gemm(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k,
          bool transpose_a, bool transpose_b) {
  gemm_blocks(a, b, c, m, n, k, transpose_a, transpose_b);
}

}  // namespace keel::kernels
