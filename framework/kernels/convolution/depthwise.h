// Depthwise convolutions: each channel has filters of its own. Computed directly, with the sums of
// a window in registers. T is float or double; the bits do not depend on the number of workers.
#pragma once

#include <cstdint>

#include <keel/framework/kernels/convolution/window_grid.h>

namespace keel::kernels {

// The sizes of a depthwise convolution. x is [batch, grid.inputs(), channels], the kernel
// [grid.taps(), channels, multiplier] and y [batch, grid.outputs(), channels, multiplier].
struct DepthwiseConvolution {
  WindowGrid grid = {};
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t multiplier = 1;  // filters of a channel
};

// Computes y[c, j] = the sum over the taps of a window of kernel[tap, c, j] x[tap, c].
template <class T>
void convolve_depthwise(const DepthwiseConvolution& sizes, const T* x, const T* kernel, T* y);

// Computes dx, the gradient of x for the gradient dy of y.
template <class T>
void convolve_depthwise_transposed(const DepthwiseConvolution& sizes, const T* dy, const T* kernel,
                                   T* dx);

// Computes the gradient of the kernel for the gradient dy of y.
template <class T>
void depthwise_kernel_gradient(const DepthwiseConvolution& sizes, const T* x, const T* dy,
                               T* dkernel);

}  // namespace keel::kernels
