// PackedMatrix: products with a matrix that is packed once and read many times, such as a layer's
// weights in serving.
//
// The matrix is stored in panels of columns, each in the order in which the product reads it. A
// small batch then streams every weight once from memory or cache. Results have the bits of
// gemm(x, b, y, m, n, k, false, false, {bias, relu}); only the sign of a sum that underflows to
// zero may differ. The result of a row depends on that row alone, not on the rest of the batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace keel::kernels {

// A packed matrix with an optional bias. multiply() may be called by several threads at once.
class PackedMatrix {
 public:
  // Copies b, [k, n] row-major, and bias, [n]; a null bias means none.
  PackedMatrix(const float* b, const float* bias, int64_t k, int64_t n);

  // The dimensions k and n of the matrix.
  int64_t inner() const { return k_; }
  int64_t columns() const { return n_; }
  // Computes y[i, j] = sum over p of x[i, p] b[p, j] + bias[j] for i < m, then max(y, 0) if relu;
  // NaN stays NaN. Rows of x and y are `x_stride` and `y_stride` floats apart. y must not overlap
  // x. Allocates nothing and runs on the calling thread only.
  void multiply(const float* x, int64_t x_stride, int64_t m, float* y, int64_t y_stride,
                bool relu) const;

 private:
  struct Rows;
  std::span<const uint16_t> factors_of(const float* x, uint16_t* numbers) const;
  int64_t multiply_panels(const Rows& rows, int64_t first) const;
  void multiply_panel(const Rows& rows, int64_t first) const;

  struct Free {
    explicit Free(size_t size) : bytes(size) {}
    size_t bytes;
    void operator()(float* block) const;
  };
  using Floats = std::unique_ptr<float[], Free>;
  static Floats zeros(int64_t count);

  const int64_t k_, n_;
  const bool has_bias_, is_finite_;
  const Floats bias_, weights_;
};

}  // namespace keel::kernels
