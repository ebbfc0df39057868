// Convolutions of batches of images with channels last, on raw memory, by matrix products.
//
// The pixels under each window form a row of a matrix of patches (im2col). Blocks of rows are
// gathered one at a time and multiplied by the kernel, so the whole matrix never exists. Blocks
// depend only on the sizes, and sums have one fixed order, so the bits do not depend on the number
// of workers. T is float or double.
#pragma once

#include <cstdint>

#include <keel/framework/kernels/convolution/window_grid.h>
#include <keel/framework/matmul_precision.h>

namespace keel::kernels {

// The sizes of a convolution y = x * kernel. x is [batch, grid.inputs(), channels], y is
// [batch, grid.outputs(), filters] and the kernel [grid.taps(), channels / groups, filters].
// Filters of a group read only the channels of this group.
struct Convolution {
  WindowGrid grid = {};
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t filters = 0;
  int64_t groups = 1;  // divides channels and filters
  // The arithmetic of float products; see gemm() and gemm_bf16().
  bool bfloat16 = false;
  MatmulPrecision precision = MatmulPrecision::kHighest;
};

// Computes y = x * kernel + bias, then max(y, 0) if `relu`; NaN stays NaN. A null bias means none.
template <class T>
void convolve(const Convolution& sizes, const T* x, const T* kernel, const T* bias, bool relu,
              T* y);

// Computes dx, the gradient of x for the gradient dy of y. This is the transposed convolution.
template <class T>
void convolve_transposed(const Convolution& sizes, const T* dy, const T* kernel, T* dx);

// Computes the gradient of the kernel for the gradient dy of y.
template <class T>
void convolution_kernel_gradient(const Convolution& sizes, const T* x, const T* dy, T* dkernel);

}  // namespace keel::kernels
