// Reduces runs and rows of numbers: sums and extrema.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace keel::kernels {

// A reducer combines up to four elements in type Near and accumulates these
// partial results in type Far. The order of operations depends only on the shape, so results have
// the same bits for any number of threads.
template <class T>
struct Sum {
  // Floats are added four at a time in float, and these sums in double: double accumulation keeps
  // the error of long sums below float precision.
  using Far = std::conditional_t<std::floating_point<T>, double, int64_t>;
  using Near = std::conditional_t<std::floating_point<T>, T, int64_t>;
  static constexpr int64_t kLanes = 8;
  static constexpr bool kJoinsVectors = false;
  static constexpr Far kInitial = 0;
  static auto join(auto a, auto b) { return a + b; }
};

// NaN takes precedence over numbers.
template <class T>
struct Greatest {
  using Far = T;
  using Near = T;
  static constexpr int64_t kLanes = 16;
  static constexpr bool kJoinsVectors = true;
  static constexpr T kInitial = std::numeric_limits<T>::has_infinity
                                    ? -std::numeric_limits<T>::infinity()
                                    : std::numeric_limits<T>::lowest();
  static T join(T a, T b) { return a > b || a != a ? a : b; }
  template <class Lanes>
  static void join_vectors(Lanes& a, const Lanes& b) {
    a = ((a > b) | (a != a)) ? a : b;
  }
};

template <class T>
struct Least {
  using Far = T;
  using Near = T;
  static constexpr int64_t kLanes = 16;
  static constexpr bool kJoinsVectors = true;
  static constexpr T kInitial = std::numeric_limits<T>::has_infinity
                                    ? std::numeric_limits<T>::infinity()
                                    : std::numeric_limits<T>::max();
  static T join(T a, T b) { return a < b || a != a ? a : b; }
  template <class Lanes>
  static void join_vectors(Lanes& a, const Lanes& b) {
    a = ((a < b) | (a != a)) ? a : b;
  }
};

template <class R, class T>
typename R::Far reduce_run(const T* x, int64_t n) {
  using Near = typename R::Near;
  using Far = typename R::Far;
  constexpr int64_t kLanes = R::kLanes;  // as many accumulators as GCC keeps in registers
  Far total = R::kInitial;
  int64_t i = 0;
  if (n >= kLanes) {
    Far lanes[kLanes];
    std::ranges::fill(lanes, R::kInitial);
    if constexpr (R::kJoinsVectors) {
      // GCC compiles the selections of the other branch to scalar code.
      typedef T Lanes __attribute__((vector_size(kLanes * sizeof(T))));
      Lanes totals, a, b, c, d;
      std::memcpy(&totals, lanes, sizeof(totals));
      for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
        std::memcpy(&a, x + i, sizeof(a));
        std::memcpy(&b, x + i + kLanes, sizeof(b));
        std::memcpy(&c, x + i + 2 * kLanes, sizeof(c));
        std::memcpy(&d, x + i + 3 * kLanes, sizeof(d));
        R::join_vectors(a, b);
        R::join_vectors(c, d);
        R::join_vectors(a, c);
        R::join_vectors(totals, a);
      }
      for (; i + kLanes <= n; i += kLanes) {
        std::memcpy(&a, x + i, sizeof(a));
        R::join_vectors(totals, a);
      }
      std::memcpy(lanes, &totals, sizeof(totals));
    } else {
      for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
        const T *a = x + i, *b = a + kLanes, *c = b + kLanes, *d = c + kLanes;
        for (int64_t l = 0; l < kLanes; ++l) {
          const Near low = R::join(static_cast<Near>(a[l]), static_cast<Near>(b[l]));
          const Near high = R::join(static_cast<Near>(c[l]), static_cast<Near>(d[l]));
          lanes[l] = R::join(lanes[l], static_cast<Far>(R::join(low, high)));
        }
      }
      for (; i + kLanes <= n; i += kLanes) {
        for (int64_t l = 0; l < kLanes; ++l)
          lanes[l] = R::join(lanes[l], static_cast<Far>(x[i + l]));
      }
    }
    for (int64_t width = kLanes / 2; width > 0; width /= 2) {
      for (int64_t l = 0; l < width; ++l) lanes[l] = R::join(lanes[l], lanes[l + width]);
    }
    total = lanes[0];
  }
  for (; i < n; ++i) total = R::join(total, static_cast<Far>(x[i]));
  return total;
}

// Combines totals[j] with the rows of x, which are `stride` elements apart, in order.
template <class R, class T>
void reduce_rows(const T* x, int64_t rows, int64_t stride, int64_t columns,
                 typename R::Far* __restrict totals) {
  using Near = typename R::Near;
  using Far = typename R::Far;
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T *a = x + r * stride, *b = a + stride, *c = b + stride, *d = c + stride;
    for (int64_t j = 0; j < columns; ++j) {
      const Near low = R::join(static_cast<Near>(a[j]), static_cast<Near>(b[j]));
      const Near high = R::join(static_cast<Near>(c[j]), static_cast<Near>(d[j]));
      totals[j] = R::join(totals[j], static_cast<Far>(R::join(low, high)));
    }
  }
  for (; r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      totals[j] = R::join(totals[j], static_cast<Far>(x[r * stride + j]));
    }
  }
}

}  // namespace keel::kernels
