// Maxima and averages of the windows of images with channels last, on raw memory. T is float or
// double; the bits do not depend on the number of workers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace keel::kernels {

// The positions [begin, end) of an axis under one window; not empty.
struct WindowRange {
  int64_t begin, end;
};

// The sizes of a pooling. x is [batch, inputs(), channels], y is [batch, outputs(), channels].
// Pixels and windows are numbered in row-major order of three axes. Inputs with fewer axes leave
// the first ones at their defaults.
struct PoolingWindows {
  int64_t batch = 0;
  int64_t channels = 0;
  std::array<int64_t, 3> input = {1, 1, 1};
  std::array<std::vector<WindowRange>, 3> ranges = {
      {{{.begin = 0, .end = 1}}, {{.begin = 0, .end = 1}}, {{.begin = 0, .end = 1}}}};

  int64_t inputs() const { return input[0] * input[1] * input[2]; }
  int64_t outputs() const {
    return std::ssize(ranges[0]) * std::ssize(ranges[1]) * std::ssize(ranges[2]);
  }
};

// Computes the maxima, or NaN for windows with a NaN.
template <class T>
void max_pool(const PoolingWindows& windows, const T* x, T* y);
// Computes the numbers of the pixels with the maxima, the first one of several.
template <class T>
void argmax_pool(const PoolingWindows& windows, const T* x, int32_t* pixels);
// Computes y[b, window, c] = x[b, pixels[b, window, c], c].
template <class T>
void select_pixels(const PoolingWindows& windows, const T* x, const int32_t* pixels, T* y);
// Adds dy[b, window, c] to dx[b, pixels[b, window, c], c]: the transpose of select_pixels().
template <class T>
void scatter_pixels(const PoolingWindows& windows, const T* dy, const int32_t* pixels, T* dx);

// Computes the averages.
template <class T>
void average_pool(const PoolingWindows& windows, const T* x, T* y);
// Computes dx, the gradient of x for the gradient dy of y.
template <class T>
void average_pool_transposed(const PoolingWindows& windows, const T* dy, T* dx);

}  // namespace keel::kernels
