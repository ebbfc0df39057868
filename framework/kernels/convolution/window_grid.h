// WindowGrid: the windows that convolutions move over the spatial axes of an input.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace keel::kernels {

// Windows along one axis. Position k of window i is the input position
// i * stride + k * dilation - before, which is padding if it lies outside the input.
struct WindowAxis {
  int64_t input = 1;   // positions of the input
  int64_t output = 1;  // number of windows
  int64_t size = 1;    // positions of a window
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t before = 0;  // padding before the first position

  int64_t position(int64_t window, int64_t k) const {
    return window * stride + k * dilation - before;
  }
};

// Windows over three axes, the outermost first. Inputs with fewer spatial axes leave the first ones
// at their defaults. Pixels, windows and taps (the positions of a window) are numbered in row-major
// order.
struct WindowGrid {
  std::array<WindowAxis, 3> axes = {};

  int64_t inputs() const { return axes[0].input * axes[1].input * axes[2].input; }
  int64_t outputs() const { return axes[0].output * axes[1].output * axes[2].output; }
  int64_t taps() const { return axes[0].size * axes[1].size * axes[2].size; }
  // Returns true if window i is pixel i.
  bool is_identity() const {
    return std::ranges::all_of(axes, [](const WindowAxis& axis) {
      return axis.size == 1 && axis.stride == 1 && axis.before == 0 && axis.input == axis.output;
    });
  }

  // Calls fn(tap, pixel, count) for the taps of a window that lie in the input, in ascending order.
  // Neighboring taps of neighboring pixels come in one call: `count` of each.
  template <class Fn>
  void for_each_run(int64_t window, const Fn& fn) const;
};

template <class Fn>
void WindowGrid::for_each_run(int64_t window, const Fn& fn) const {
  const auto& [outer, middle, inner] = axes;
  const int64_t column = window % inner.output, rest = window / inner.output;
  const int64_t row = rest % middle.output, plane = rest / middle.output;
  // The taps [first, last) of an innermost axis without dilation are neighbors.
  const int64_t begin = inner.position(column, 0);
  const int64_t first = std::clamp<int64_t>(-begin, 0, inner.size);
  const int64_t last = std::clamp<int64_t>(inner.input - begin, first, inner.size);
  for (int64_t i = 0; i < outer.size; ++i) {
    const int64_t z = outer.position(plane, i);
    if (z < 0 || z >= outer.input) continue;
    for (int64_t j = 0; j < middle.size; ++j) {
      const int64_t y = middle.position(row, j);
      if (y < 0 || y >= middle.input) continue;
      const int64_t tap = (i * middle.size + j) * inner.size;
      const int64_t pixel = (z * middle.input + y) * inner.input;
      if (inner.dilation == 1) {
        if (first < last) fn(tap + first, pixel + begin + first, last - first);
        continue;
      }
      for (int64_t k = 0; k < inner.size; ++k) {
        const int64_t x = inner.position(column, k);
        if (x >= 0 && x < inner.input) fn(tap + k, pixel + x, int64_t{1});
      }
    }
  }
}

}  // namespace keel::kernels
