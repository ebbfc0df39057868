// Pools windows whose ranges follow from the size of the input.
#pragma once

#include <algorithm>

#include <keel/autodiff/spatial_ops.h>
#include <keel/layers/internal/spatial_layout.h>
#include <keel/layers/pooling/pooling.h>

namespace keel {

// Pools x, whose axes are those of the layout. ranges_of(i, size) returns the ranges of spatial
// axis i, which has this size. The result of a symbolic x is symbolic; axes of unknown size stay
// unknown.
template <class RangesOf>
Tensor pool(const Tensor& x, const SpatialLayout& layout, PoolingKind kind,
            const RangesOf& ranges_of) {
  ops::PoolingRanges ranges;
  Shape shape = x.shape();
  for (int i = 0; i < layout.axes; ++i) {
    const int axis = layout.spatial_axis(i);
    if (x.dim(axis) == kUnknown) continue;
    ranges.push_back(ranges_of(i, x.dim(axis)));
    shape = shape.with(axis, std::ssize(ranges.back()));
  }
  if (x.is_symbolic()) return Tensor::symbolic({.shape = shape, .dtype = x.dtype()});
  const Tensor images = layout.to_channels_last(x);
  const Tensor y =
      kind == PoolingKind::kMax ? ops::max_pool(images, ranges) : ops::average_pool(images, ranges);
  return layout.from_channels_last(y);
}

// Returns the positions under each window along an axis with `input` positions.
inline std::vector<ops::PoolingRange> window_ranges(int64_t input, int64_t size, int64_t stride,
                                                    bool is_same) {
  int64_t count = input < size ? 0 : (input - size) / stride + 1;
  int64_t before = 0;
  if (is_same) {
    count = (input + stride - 1) / stride;
    before = std::max<int64_t>(0, (count - 1) * stride + size - input) / 2;
  }
  std::vector<ops::PoolingRange> out;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * stride - before;
    out.push_back({.begin = std::max<int64_t>(begin, 0), .end = std::min(begin + size, input)});
  }
  return out;
}

// Returns `count` ranges that cover `size` positions evenly; neighbors overlap if needed.
inline std::vector<ops::PoolingRange> adaptive_ranges(int64_t size, int64_t count) {
  std::vector<ops::PoolingRange> out;
  for (int64_t i = 0; i < count; ++i) {
    out.push_back({.begin = i * size / count, .end = ((i + 1) * size + count - 1) / count});
  }
  return out;
}

}  // namespace keel
