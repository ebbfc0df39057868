#include <keel/framework/kernels/convolution/depthwise.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/convolution/fused.h>
#include <keel/framework/kernels/scratch.h>
#include <keel/framework/kernels/vector_register.h>

namespace keel::kernels {
namespace {

constexpr int64_t kBlockWork = 1 << 16;  // multiplications of a block of a parallel loop
constexpr int64_t kMostParts = 16;       // parts of the sums of the kernel's gradient
constexpr int64_t kPartWork = 1 << 18;   // multiplications of such a part, at least

int64_t rows_of_block(int64_t work_of_row) {
  return std::max<int64_t>(1, kBlockWork / std::max<int64_t>(work_of_row, 1));
}

// A tap of a window and the pixel under it; or, for the transpose, a tap and a window.
struct Pair {
  int64_t tap, place;
};

// Computes out[c, j] = the sum over the pairs of kernel[tap, c, j] x[place, c].
template <class T>
void sum_of_window(const DepthwiseConvolution& d, const std::vector<Pair>& pairs, const T* x,
                   const T* kernel, T* __restrict out) {
  const int64_t width = d.channels * d.multiplier;
  std::fill_n(out, width, T{0});
  for (const Pair& pair : pairs) {
    const T* const w = kernel + pair.tap * width;
    const T* const from = x + pair.place * d.channels;
    for (int64_t c = 0; c < d.channels; ++c) {
      for (int64_t j = 0; j < d.multiplier; ++j) {
        const int64_t at = c * d.multiplier + j;
        out[at] = fused_multiply_add(w[at], from[c], out[at]);
      }
    }
  }
}

// Computes out[c] = the sum over the pairs of kernel[tap, c] x[place, c] for as many channels as
// kRegisters hold. Compilers vectorize this loop over the pairs, with slow gathers, unless it is
// written with registers.
template <int kRegisters>
void sum_in_registers(int64_t channels, const std::vector<Pair>& pairs, const float* x,
                      const float* kernel, float* out) {
  internal::Vector sums[kRegisters] = {};
  for (const Pair& pair : pairs) {
    const float* const w = kernel + pair.tap * channels;
    const float* const from = x + pair.place * channels;
#pragma GCC unroll 8
    for (int r = 0; r < kRegisters; ++r) {
      const int at = r * internal::kWidth;
      sums[r] = internal::multiply_add(internal::load(w + at), internal::load(from + at), sums[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRegisters; ++r) internal::store(out + r * internal::kWidth, sums[r]);
}

// Computes out[c] = the sum over the pairs of kernel[tap, c] x[place, c], for a kernel with one
// filter for each channel.
template <class T>
void sum_by_channel(int64_t channels, const std::vector<Pair>& pairs, const T* x, const T* kernel,
                    T* out) {
  int64_t first = 0;
  if constexpr (std::is_same_v<T, float>) {
    constexpr int64_t kMany = 4, kWidth = internal::kWidth;
    for (; first + kMany * kWidth <= channels; first += kMany * kWidth) {
      sum_in_registers<kMany>(channels, pairs, x + first, kernel + first, out + first);
    }
    for (; first + kWidth <= channels; first += kWidth) {
      sum_in_registers<1>(channels, pairs, x + first, kernel + first, out + first);
    }
  }
  T* __restrict rest = out + first;
  std::fill(rest, out + channels, T{0});
  for (const Pair& pair : pairs) {
    const T* const w = kernel + pair.tap * channels + first;
    const T* const from = x + pair.place * channels + first;
    for (int64_t i = 0; i < channels - first; ++i) {
      rest[i] = fused_multiply_add(w[i], from[i], rest[i]);
    }
  }
}

// Adds x[p step + c] y[p channels + c] to out[c] for all p < count, in ascending order of p.
template <int kRegisters>
void add_in_registers(int64_t channels, int64_t count, const float* x, int64_t step, const float* y,
                      float* out) {
  internal::Vector sums[kRegisters];
#pragma GCC unroll 8
  for (int r = 0; r < kRegisters; ++r) sums[r] = internal::load(out + r * internal::kWidth);
  for (int64_t p = 0; p < count; ++p) {
#pragma GCC unroll 8
    for (int r = 0; r < kRegisters; ++r) {
      const int at = r * internal::kWidth;
      sums[r] = internal::multiply_add(internal::load(x + p * step + at),
                                       internal::load(y + p * channels + at), sums[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRegisters; ++r) internal::store(out + r * internal::kWidth, sums[r]);
}

// Computes the sums for any number of channels.
template <class T>
void add_by_channel(int64_t channels, int64_t count, const T* x, int64_t step, const T* y,
                    T* __restrict out) {
  int64_t first = 0;
  if constexpr (std::is_same_v<T, float>) {
    constexpr int64_t kMany = 4, kWidth = internal::kWidth;
    for (; first + kMany * kWidth <= channels; first += kMany * kWidth) {
      add_in_registers<kMany>(channels, count, x + first, step, y + first, out + first);
    }
    for (; first + kWidth <= channels; first += kWidth) {
      add_in_registers<1>(channels, count, x + first, step, y + first, out + first);
    }
  }
  for (int64_t p = 0; p < count; ++p) {
    for (int64_t c = first; c < channels; ++c) {
      out[c] = fused_multiply_add(x[p * step + c], y[p * channels + c], out[c]);
    }
  }
}

// Adds the gradient that `count` windows of one line give to a kernel with one filter for each
// channel. `column` is the first window, and dy its gradient; x is the image.
template <class T>
void add_gradient_of_line(const DepthwiseConvolution& d, int64_t line, int64_t column,
                          int64_t count, const T* x, const T* dy, T* out) {
  const auto& [outer, middle, inner] = d.grid.axes;
  for (int64_t i = 0; i < outer.size; ++i) {
    const int64_t z = outer.position(line / middle.output, i);
    if (z < 0 || z >= outer.input) continue;
    for (int64_t j = 0; j < middle.size; ++j) {
      const int64_t y = middle.position(line % middle.output, j);
      if (y < 0 || y >= middle.input) continue;
      const T* const pixels = x + (z * middle.input + y) * inner.input * d.channels;
      for (int64_t k = 0; k < inner.size; ++k) {
        int64_t first = column, last = column + count;  // the windows whose position k is a pixel
        while (first < last && inner.position(first, k) < 0) ++first;
        while (last > first && inner.position(last - 1, k) >= inner.input) --last;
        if (first == last) continue;
        const int64_t tap = (i * middle.size + j) * inner.size + k;
        add_by_channel(d.channels, last - first, pixels + inner.position(first, k) * d.channels,
                       inner.stride * d.channels, dy + (first - column) * d.channels,
                       out + tap * d.channels);
      }
    }
  }
}

// Computes out[c] = the sum over the pairs and j of kernel[tap, c, j] dy[place, c, j].
template <class T>
void sum_of_pixel(const DepthwiseConvolution& d, const std::vector<Pair>& pairs, const T* dy,
                  const T* kernel, T* __restrict out) {
  const int64_t width = d.channels * d.multiplier;
  std::fill_n(out, d.channels, T{0});
  for (const Pair& pair : pairs) {
    const T* const w = kernel + pair.tap * width;
    const T* const from = dy + pair.place * width;
    for (int64_t c = 0; c < d.channels; ++c) {
      for (int64_t j = 0; j < d.multiplier; ++j) {
        const int64_t at = c * d.multiplier + j;
        out[c] = fused_multiply_add(w[at], from[at], out[c]);
      }
    }
  }
}

// For each position of an axis: the taps that reach it, with their windows.
std::vector<std::vector<Pair>> windows_over(const WindowAxis& axis) {
  std::vector<std::vector<Pair>> out(axis.input);
  for (int64_t k = 0; k < axis.size; ++k) {
    for (int64_t i = 0; i < axis.output; ++i) {
      const int64_t at = axis.position(i, k);
      if (at >= 0 && at < axis.input) out[at].push_back({k, i});
    }
  }
  return out;
}

}  // namespace

template <class T>
void convolve_depthwise(const DepthwiseConvolution& sizes, const T* x, const T* kernel, T* y) {
  const WindowGrid& grid = sizes.grid;
  const int64_t outputs = grid.outputs(), width = sizes.channels * sizes.multiplier;
  parallel_for(sizes.batch * outputs, rows_of_block(grid.taps() * width),
               [&](int64_t begin, int64_t end) {
                 std::vector<Pair> pairs;
                 for (int64_t row = begin; row < end; ++row) {
                   pairs.clear();
                   grid.for_each_run(row % outputs, [&](int64_t tap, int64_t pixel, int64_t count) {
                     for (int64_t i = 0; i < count; ++i) pairs.push_back({tap + i, pixel + i});
                   });
                   const T* const image = x + row / outputs * grid.inputs() * sizes.channels;
                   if (sizes.multiplier == 1) {
                     sum_by_channel(width, pairs, image, kernel, y + row * width);
                   } else {
                     sum_of_window(sizes, pairs, image, kernel, y + row * width);
                   }
                 }
               });
}

template <class T>
void convolve_depthwise_transposed(const DepthwiseConvolution& sizes, const T* dy, const T* kernel,
                                   T* dx) {
  const WindowGrid& grid = sizes.grid;
  const auto& [outer, middle, inner] = grid.axes;
  const auto planes = windows_over(outer), rows = windows_over(middle),
             columns = windows_over(inner);
  const int64_t inputs = grid.inputs(), width = sizes.channels * sizes.multiplier;
  parallel_for(sizes.batch * inputs, rows_of_block(grid.taps() * width),
               [&](int64_t begin, int64_t end) {
                 std::vector<Pair> pairs;
                 for (int64_t pixel = begin; pixel < end; ++pixel) {
                   pairs.clear();
                   const int64_t line = pixel % inputs / inner.input;
                   for (const auto& [i, z] : planes[line / middle.input]) {
                     for (const auto& [j, y] : rows[line % middle.input]) {
                       const int64_t tap = (i * middle.size + j) * inner.size;
                       const int64_t place = (z * middle.output + y) * inner.output;
                       for (const auto& [k, at] : columns[pixel % inner.input]) {
                         pairs.push_back({tap + k, place + at});
                       }
                     }
                   }
                   const T* const image = dy + pixel / inputs * grid.outputs() * width;
                   if (sizes.multiplier == 1) {
                     sum_by_channel(width, pairs, image, kernel, dx + pixel * width);
                   } else {
                     sum_of_pixel(sizes, pairs, image, kernel, dx + pixel * sizes.channels);
                   }
                 }
               });
}

template <class T>
void depthwise_kernel_gradient(const DepthwiseConvolution& sizes, const T* x, const T* dy,
                               T* dkernel) {
  const WindowGrid& grid = sizes.grid;
  const int64_t multiplier = sizes.multiplier, width = sizes.channels * multiplier;
  const int64_t elements = grid.taps() * width, outputs = grid.outputs();
  const int64_t rows = sizes.batch * outputs;
  const int64_t parts = std::clamp<int64_t>(rows * elements / kPartWork, 1, kMostParts);
  const Scratch<T> sums(parts * elements);
  std::fill_n(sums.data(), parts * elements, T{0});
  parallel_for(parts, 1, [&](int64_t part, int64_t) {
    T* const own = sums.data() + part * elements;
    const int64_t end = rows * (part + 1) / parts;
    int64_t row = rows * part / parts;
    while (multiplier == 1 && row < end) {
      const int64_t columns = grid.axes[2].output, column = row % columns;
      const int64_t count = std::min(end - row, columns - column);
      add_gradient_of_line(sizes, row % outputs / columns, column, count,
                           x + row / outputs * grid.inputs() * sizes.channels, dy + row * width,
                           own);
      row += count;
    }
    for (; row < end; ++row) {
      const T* const image = x + row / outputs * grid.inputs() * sizes.channels;
      const T* const from = dy + row * width;
      grid.for_each_run(row % outputs, [&](int64_t tap, int64_t pixel, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          const T* const in = image + (pixel + i) * sizes.channels;
          T* __restrict to = own + (tap + i) * width;
          for (int64_t c = 0; c < sizes.channels; ++c) {
            for (int64_t j = 0; j < multiplier; ++j) {
              const int64_t at = c * multiplier + j;
              to[at] = fused_multiply_add(in[c], from[at], to[at]);
            }
          }
        }
      });
    }
  });
  std::copy_n(sums.data(), elements, dkernel);
  for (int64_t part = 1; part < parts; ++part) {
    for (int64_t i = 0; i < elements; ++i) dkernel[i] += sums.data()[part * elements + i];
  }
}

template void convolve_depthwise(const DepthwiseConvolution&, const float*, const float*, float*);
template void convolve_depthwise(const DepthwiseConvolution&, const double*, const double*,
                                 double*);
template void convolve_depthwise_transposed(const DepthwiseConvolution&, const float*, const float*,
                                            float*);
template void convolve_depthwise_transposed(const DepthwiseConvolution&, const double*,
                                            const double*, double*);
template void depthwise_kernel_gradient(const DepthwiseConvolution&, const float*, const float*,
                                        float*);
template void depthwise_kernel_gradient(const DepthwiseConvolution&, const double*, const double*,
                                        double*);

}  // namespace keel::kernels
