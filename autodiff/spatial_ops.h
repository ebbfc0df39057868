// Differentiable functions of images and their like: tensors [batch, spatial axes ..., channels]
// with one, two or three spatial axes. They follow the rules of autodiff/ops.h and take float32 and
// float64.
#pragma once

#include <string>
#include <vector>

#include <keel/framework/tensor.h>

namespace keel::ops {

// The windows along one spatial axis. Position k of window i is position
// i * stride + k * dilation - before of the input, which is zero outside of it.
struct SpatialWindow {
  int64_t size = 1;      // number of positions
  int64_t stride = 1;    // from one window to the next
  int64_t dilation = 1;  // from one position to the next
  int64_t before = 0;    // zeros before the first position of the input
  int64_t after = 0;     // zeros after the last position of the input

  // Returns the number of positions from the first to the last one of a window.
  int64_t span() const { return (size - 1) * dilation + 1; }
  // Returns the number of windows over `input` positions, which may be kUnknown; 0 if none fits.
  int64_t count(int64_t input) const;
};
// One element for each spatial axis.
using SpatialWindows = std::vector<SpatialWindow>;

// Returns the convolution (without flipping the kernel)
//   y[b, i, f] = bias[f] + the sum over k and c of kernel[k, c, f] x[b, position k of window i, c],
// passed through relu if `relu`. Kernel: [sizes of the windows ..., channels / groups, filters];
// bias: [filters], or an empty handle. With groups, the filters of each group read only the
// channels of that group.
Tensor convolution(const Tensor& x, const Tensor& kernel, const Tensor& bias,
                   const SpatialWindows& windows, int64_t groups = 1, bool relu = false);
// Returns the transpose (adjoint) of convolution() in x: [batch, sizes ..., channels] for y [batch,
// windows ..., filters]. Throws ValueError unless convolution() of an input of these sizes has the
// shape of y.
Tensor transposed_convolution(const Tensor& y, const Tensor& kernel, const SpatialWindows& windows,
                              const std::vector<int64_t>& sizes, int64_t groups = 1);
// Returns the convolution of each channel with its own filters: kernel [sizes of the windows ...,
// channels, multiplier], result [batch, windows ..., channels * multiplier].
Tensor depthwise_convolution(const Tensor& x, const Tensor& kernel, const SpatialWindows& windows);

// The positions [begin, end) of a spatial axis; not empty.
struct PoolingRange {
  int64_t begin = 0;  // first position
  int64_t end = 1;    // position after the last one
};
// The ranges of each spatial axis. The windows are all combinations.
using PoolingRanges = std::vector<std::vector<PoolingRange>>;

// Returns the greatest element of each window and channel, NaN if there is one: [batch, ranges of
// the first axis, ..., channels]. The gradient goes to the first of equal elements.
Tensor max_pool(const Tensor& x, const PoolingRanges& ranges);
// Returns the mean of the elements of each window and channel.
Tensor average_pool(const Tensor& x, const PoolingRanges& ranges);

// Returns x with `size` positions on `axis`, interpolated between the positions of x, whose centers
// are at 0.5, 1.5, ... of the axis. `interpolation` is
//   "nearest"               the position in which the new center lies
//   "bilinear"              a weighted mean of two positions
//   "bicubic"               of four positions (Keys 1981, with a = -0.5)
//   "lanczos3", "lanczos5"  of six and ten positions (Lanczos windows of this radius).
// Near the ends, the weights of the positions that exist are scaled to the sum 1. A smaller size
// does not widen the windows. Throws ValueError for another name and for a size that is not
// positive.
Tensor resize_axis(const Tensor& x, int axis, int64_t size, const std::string& interpolation);

}  // namespace keel::ops
