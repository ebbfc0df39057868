#include <keel/framework/kernels/convolution/pooling.h>

#include <algorithm>

#include <keel/framework/base/parallel.h>

namespace keel::kernels {
namespace {

constexpr int64_t kGrain = 16384;  // elements that a block of a parallel loop reads or writes

// Calls fn(pixel) for the pixels under a window of a sample, in ascending order. Returns their
// number.
template <class Fn>
int64_t for_each_pixel(const PoolingWindows& w, int64_t window, const Fn& fn) {
  const int64_t columns = std::ssize(w.ranges[2]), rows = std::ssize(w.ranges[1]);
  const WindowRange z = w.ranges[0][window / columns / rows];
  const WindowRange y = w.ranges[1][window / columns % rows];
  const WindowRange x = w.ranges[2][window % columns];
  for (int64_t i = z.begin; i < z.end; ++i) {
    for (int64_t j = y.begin; j < y.end; ++j) {
      for (int64_t k = x.begin; k < x.end; ++k) fn((i * w.input[1] + j) * w.input[2] + k);
    }
  }
  return (z.end - z.begin) * (y.end - y.begin) * (x.end - x.begin);
}

// Calls fn(window, image, at) in parallel for all windows of all samples: the number of the window
// in its sample, and the positions at which the sample begins in x and the window in y.
template <class Fn>
void for_each_window(const PoolingWindows& w, const Fn& fn) {
  const int64_t outputs = w.outputs(), image = w.inputs() * w.channels;
  const int64_t windows = std::max<int64_t>(1, w.batch * outputs);
  const int64_t work = std::max<int64_t>(1, w.batch * image / windows + w.channels);
  parallel_for(w.batch * outputs, std::max<int64_t>(1, kGrain / work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   fn(i % outputs, i / outputs * image, i * w.channels);
                 }
               });
}

// Calls `fn` like for_each_window(), for functions that write to pixels. Windows may overlap, so
// the windows of a sample are processed in ascending order by one worker.
template <class Fn>
void for_each_window_of_samples(const PoolingWindows& w, const Fn& fn) {
  const int64_t outputs = w.outputs(), image = w.inputs() * w.channels;
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(image, 1));
  parallel_for(w.batch, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * outputs; i < end * outputs; ++i) {
      fn(i % outputs, i / outputs * image, i * w.channels);
    }
  });
}

// Returns true if `next` replaces the maximum. NaN always does, so that it propagates.
template <class T>
bool is_greater(T next, T maximum) {
  return next > maximum || next != next;
}

}  // namespace

template <class T>
void max_pool(const PoolingWindows& windows, const T* x, T* y) {
  for_each_window(windows, [&](int64_t window, int64_t image, int64_t at) {
    T* __restrict out = y + at;
    bool is_first = true;
    for_each_pixel(windows, window, [&](int64_t pixel) {
      const T* const from = x + image + pixel * windows.channels;
      if (is_first) {
        std::copy_n(from, windows.channels, out);
      } else {
        for (int64_t c = 0; c < windows.channels; ++c) {
          out[c] = is_greater(from[c], out[c]) ? from[c] : out[c];
        }
      }
      is_first = false;
    });
  });
}

template <class T>
void argmax_pool(const PoolingWindows& windows, const T* x, int32_t* pixels) {
  for_each_window(windows, [&](int64_t window, int64_t image, int64_t at) {
    const T* const from = x + image;
    int32_t* __restrict out = pixels + at;
    bool is_first = true;
    for_each_pixel(windows, window, [&](int64_t pixel) {
      for (int64_t c = 0; c < windows.channels; ++c) {
        const int64_t best = out[c];
        const bool wins = is_first || is_greater(from[pixel * windows.channels + c],
                                                 from[best * windows.channels + c]);
        out[c] = wins ? static_cast<int32_t>(pixel) : out[c];
      }
      is_first = false;
    });
  });
}

template <class T>
void select_pixels(const PoolingWindows& windows, const T* x, const int32_t* pixels, T* y) {
  for_each_window(windows, [&](int64_t, int64_t image, int64_t at) {
    for (int64_t c = 0; c < windows.channels; ++c) {
      y[at + c] = x[image + pixels[at + c] * windows.channels + c];
    }
  });
}

template <class T>
void scatter_pixels(const PoolingWindows& windows, const T* dy, const int32_t* pixels, T* dx) {
  std::fill_n(dx, windows.batch * windows.inputs() * windows.channels, T{0});
  for_each_window_of_samples(windows, [&](int64_t, int64_t image, int64_t at) {
    for (int64_t c = 0; c < windows.channels; ++c) {
      dx[image + pixels[at + c] * windows.channels + c] += dy[at + c];
    }
  });
}

template <class T>
void average_pool(const PoolingWindows& windows, const T* x, T* y) {
  for_each_window(windows, [&](int64_t window, int64_t image, int64_t at) {
    T* __restrict out = y + at;
    std::fill_n(out, windows.channels, T{0});
    const int64_t count = for_each_pixel(windows, window, [&](int64_t pixel) {
      const T* const from = x + image + pixel * windows.channels;
      for (int64_t c = 0; c < windows.channels; ++c) out[c] += from[c];
    });
    for (int64_t c = 0; c < windows.channels; ++c) out[c] /= static_cast<T>(count);
  });
}

template <class T>
void average_pool_transposed(const PoolingWindows& windows, const T* dy, T* dx) {
  std::fill_n(dx, windows.batch * windows.inputs() * windows.channels, T{0});
  for_each_window_of_samples(windows, [&](int64_t window, int64_t image, int64_t at) {
    const T count = static_cast<T>(for_each_pixel(windows, window, [](int64_t) {}));
    for_each_pixel(windows, window, [&](int64_t pixel) {
      T* __restrict to = dx + image + pixel * windows.channels;
      for (int64_t c = 0; c < windows.channels; ++c) to[c] += dy[at + c] / count;
    });
  });
}

#define KEEL_INSTANTIATE(T)                                                          \
  template void max_pool(const PoolingWindows&, const T*, T*);                       \
  template void argmax_pool(const PoolingWindows&, const T*, int32_t*);              \
  template void select_pixels(const PoolingWindows&, const T*, const int32_t*, T*);  \
  template void scatter_pixels(const PoolingWindows&, const T*, const int32_t*, T*); \
  template void average_pool(const PoolingWindows&, const T*, T*);                   \
  template void average_pool_transposed(const PoolingWindows&, const T*, T*);
KEEL_INSTANTIATE(float)
KEEL_INSTANTIATE(double)
#undef KEEL_INSTANTIATE

}  // namespace keel::kernels
