#include <keel/framework/kernels/embedding/interaction.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/constant_dim.h>
#include <keel/framework/kernels/scratch.h>

#if defined(__AVX512F__) || defined(__FMA__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace keel::kernels {
namespace {

// Bytes of a register, and the number of sums that stay in registers beside the operands.
#if defined(__AVX512F__)
constexpr int64_t kRegister = 64, kSums = 24;
#elif defined(__AVX__)
constexpr int64_t kRegister = 32, kSums = 9;
#elif defined(__aarch64__)
constexpr int64_t kRegister = 16, kSums = 24;
#else
constexpr int64_t kRegister = 16, kSums = 9;
#endif
template <class T>
struct LanesOf {
  typedef T Type __attribute__((vector_size(kRegister)));
};
template <class T>
using Lanes = typename LanesOf<T>::Type;
template <class T>
constexpr int64_t kLanes = kRegister / static_cast<int64_t>(sizeof(T));

template <class T>
inline Lanes<T> load_lanes(const T* from) {
  Lanes<T> out;
  std::memcpy(&out, from, sizeof(out));
  return out;
}
template <class T>
inline void store_lanes(T* to, const Lanes<T>& lanes) {
  std::memcpy(to, &lanes, sizeof(lanes));
}

// Returns sum + x * y, rounded once, as in vector_register.h.
template <class T>
inline Lanes<T> multiply_add(T x, const Lanes<T>& y, const Lanes<T>& sum) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_fmadd_ps(_mm512_set1_ps(x), y, sum);
  if constexpr (sizeof(T) == 8) return _mm512_fmadd_pd(_mm512_set1_pd(x), y, sum);
#elif defined(__FMA__)
  if constexpr (sizeof(T) == 4) return _mm256_fmadd_ps(_mm256_set1_ps(x), y, sum);
  if constexpr (sizeof(T) == 8) return _mm256_fmadd_pd(_mm256_set1_pd(x), y, sum);
#elif defined(__aarch64__)
  if constexpr (sizeof(T) == 4) return vfmaq_n_f32(sum, y, x);
  if constexpr (sizeof(T) == 8) return vfmaq_n_f64(sum, y, x);
#else
  return x * y + sum;
#endif
}

constexpr int64_t kBlockWork = 1 << 21;          // multiplications per parallel block
constexpr int64_t kScratch = int64_t{12} << 10;  // bytes of features that are copied together

// Calls fn(integral_constant) for 0, 1, ..., kCount - 1.
template <int64_t kCount, class Fn>
inline void unrolled(const Fn& fn) {
  [&]<int64_t... kAt>(std::integer_sequence<int64_t, kAt...>) {
    (fn(std::integral_constant<int64_t, kAt>()), ...);
  }(std::make_integer_sequence<int64_t, kCount>());
}

// Splits [begin, end) into blocks of at most `kMost` rows, of about equal size, and calls
// fn(first, integral_constant) for each. The constant is the number of rows of the block.
template <int64_t kMost, class Fn>
void in_blocks(int64_t begin, int64_t end, const Fn& fn) {
  const int64_t blocks = (end - begin + kMost - 1) / kMost;
  for (int64_t left = blocks; left > 0; --left) {
    const int64_t rows = (end - begin + left - 1) / left;
    unrolled<kMost>([&](auto less) {
      constexpr int64_t kRows = decltype(less)::value + 1;
      if (rows == kRows) fn(begin, std::integral_constant<int64_t, kRows>());
    });
    begin += rows;
  }
}

// Transposes a square of lanes by exchanging blocks of 1, 2, 4, ... elements across the diagonal.
template <class T, int64_t kBlock = 1>
inline void transpose(std::array<Lanes<T>, kLanes<T>>& rows) {
  if constexpr (kBlock < kLanes<T>) {
    unrolled<kLanes<T>>([&](auto at) {
      constexpr int64_t kRow = decltype(at)::value;
      if constexpr ((kRow & kBlock) == 0) {
        const Lanes<T> a = rows[kRow], b = rows[kRow + kBlock];
        [&]<int64_t... k>(std::integer_sequence<int64_t, k...>) {
          rows[kRow] =
              __builtin_shufflevector(a, b, ((k & kBlock) == 0 ? k : kLanes<T> + k - kBlock)...);
          rows[kRow + kBlock] =
              __builtin_shufflevector(a, b, ((k & kBlock) == 0 ? k + kBlock : kLanes<T> + k)...);
        }(std::make_integer_sequence<int64_t, kLanes<T>>());
      }
    });
    transpose<T, kBlock * 2>(rows);
  }
}

// The layout of the features of one sample: contiguous rows, padded to whole registers.
template <class T>
struct Sample {
  explicit Sample(const FeaturePairs& p)
      : pairs(p),
        width((p.dim + kLanes<T> - 1) / kLanes<T> * kLanes<T>),
        columns((p.features + kLanes<T> - 1) / kLanes<T> * kLanes<T>) {}

  const FeaturePairs pairs;
  const int64_t width;    // elements of a row, padded
  const int64_t columns;  // elements of a transposed row, padded
  int64_t size() const { return pairs.features * width; }
  int64_t transposed_size() const { return width * columns; }
};

// Transposes x [features, width] to [width, columns], with zeros after the last feature.
// Uninitialized memory there could hold subnormal numbers, each of which costs Intel's processors
// 150 cycles.
template <class T>
[[gnu::noinline, gnu::flatten]] void transpose_features(const Sample<T>& sample, const T* x,
                                                        T* out) {
  const int64_t width = sample.width, columns = sample.columns;
  for (int64_t f = 0; f < columns; f += kLanes<T>) {
    for (int64_t d = 0; d < width; d += kLanes<T>) {
      std::array<Lanes<T>, kLanes<T>> tile;
      unrolled<kLanes<T>>([&](auto r) {
        tile[r] = f + r < sample.pairs.features ? load_lanes(x + (f + r) * width + d) : Lanes<T>{};
      });
      transpose<T>(tile);
      unrolled<kLanes<T>>([&](auto r) { store_lanes(out + (d + r) * columns + f, tile[r]); });
    }
  }
}

// ---- Products of pairs. Each part whose sums must stay in registers is a function of its own,
// flattened: otherwise GCC does not inline some of the lambdas, and the sums go through memory.

// One summand of the products: the transposed features of two samples.
template <class T>
struct Term {
  const T *x, *y;
};

// Computes out[r] = the products of feature i + r with one register of features from j on.
template <int64_t kRows, class T>
[[gnu::noinline, gnu::flatten]] void strip_products(const Sample<T>& sample,
                                                    std::span<const Term<T>> terms, int64_t i,
                                                    int64_t j, Lanes<T>* out) {
  const int64_t dim = sample.pairs.dim, columns = sample.columns;
  std::array<Lanes<T>, kRows> sums = {};
  for (const Term<T>& term : terms) {
    const T *x = term.x + i, *y = term.y + j;
    for (int64_t d = 0; d < dim; ++d, x += columns, y += columns) {
      const Lanes<T> lanes = load_lanes(y);
      unrolled<kRows>([&](auto r) { sums[r] = multiply_add(x[r], lanes, sums[r]); });
    }
  }
  unrolled<kRows>([&](auto r) { out[r] = sums[r]; });
}

// Computes out[pair (i, j)] = sum over terms of x_i . y_j. Registers are stored whole. The excess
// lanes overwrite pairs that are stored later, which fixes the order: rows with the same number of
// strips of partners are processed together, and their last strip, the only partial one, is stored
// first.
template <class T>
void multiply(const Sample<T>& sample, std::span<const Term<T>> terms, T* out) {
  constexpr int64_t kMost = 8;
  const FeaturePairs& pairs = sample.pairs;
  int64_t first = pairs.self ? 0 : 1;
  for (int64_t last_strip = 0; first < pairs.features; last_strip += kLanes<T>) {
    const int64_t end = std::min(first + kLanes<T>, pairs.features);
    in_blocks<kMost>(first, end, [&](int64_t i, auto rows) {
      for (int64_t j = last_strip; j >= 0; j -= kLanes<T>) {
        std::array<Lanes<T>, rows> sums;
        strip_products<rows>(sample, terms, i, j, sums.data());
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t at = pairs.before(i + r) + j;
          if (at + kLanes<T> <= pairs.count()) {
            store_lanes(out + at, sums[r]);
          } else {
            const int64_t n = std::min(kLanes<T>, pairs.partners(i + r) - j);
            std::memcpy(out + at, &sums[r], n * sizeof(T));
          }
        }
      }
    });
    first = end;
  }
}

// ---- Gradients.

// Computes the gradients of the features [i, i + kRows), in kColumns registers each.
template <int64_t kRows, int64_t kColumns, class T>
[[gnu::noinline, gnu::flatten]] void rows_back(const Sample<T>& sample, const T* x, const T* dy,
                                               int64_t i, T* dx) {
  const FeaturePairs& pairs = sample.pairs;
  const int64_t width = sample.width;
  std::array<std::array<Lanes<T>, kColumns>, kRows> sums = {};
  std::array<const T*, kRows> partners;
  unrolled<kRows>([&](auto r) { partners[r] = dy + pairs.before(i + r); });
  // Pair (i, i) is x_i . x_i, whose gradient is 2 x_i.
  if (pairs.self) {
    unrolled<kRows>([&](auto r) {
      unrolled<kColumns>([&](auto c) {
        const Lanes<T> own = load_lanes(x + (i + r) * width + c * kLanes<T>);
        sums[r][c] = 2 * partners[r][i + r] * own;
      });
    });
  }
  // Adds factor(r) times feature j to every row r except `left_out`.
  const auto add = [&](int64_t j, auto left_out, const auto& factor) {
    std::array<Lanes<T>, kColumns> other;
    unrolled<kColumns>([&](auto c) { other[c] = load_lanes(x + j * width + c * kLanes<T>); });
    unrolled<kRows>([&](auto r) {
      if constexpr (r != left_out) {
        const T f = factor(r);
        unrolled<kColumns>([&](auto c) { sums[r][c] = multiply_add(f, other[c], sums[r][c]); });
      }
    });
  };
  constexpr std::integral_constant<int64_t, -1> kNone;
  for (int64_t j = 0; j < i; ++j) add(j, kNone, [&](auto r) { return partners[r][j]; });
  unrolled<kRows>([&](auto q) {
    add(i + q, q,
        [&](auto r) { return partners[std::max<int64_t>(r, q)][i + std::min<int64_t>(r, q)]; });
  });
  const T* column = dy + pairs.before(i + kRows) + i;
  for (int64_t j = i + kRows; j < pairs.features; column += pairs.partners(j), ++j) {
    add(j, kNone, [&](auto r) { return column[r]; });
  }
  unrolled<kRows>([&](auto r) {
    unrolled<kColumns>([&](auto c) { store_lanes(dx + r * width + c * kLanes<T>, sums[r][c]); });
  });
}

template <int64_t kColumns, class T>
void multiply_back(const Sample<T>& sample, const T* x, const T* dy, T* dx) {
  constexpr int64_t kMost = std::max<int64_t>(1, std::min<int64_t>(9, kSums / kColumns));
  in_blocks<kMost>(0, sample.pairs.features, [&](int64_t i, auto rows) {
    rows_back<rows, kColumns>(sample, x, dy, i, dx + i * sample.width);
  });
}

// Computes dx [features, width] from dy [pairs].
template <class T>
void multiply_back(const Sample<T>& sample, const T* x, const T* dy, T* dx) {
  int64_t d = 0;
  for (; d + 4 * kLanes<T> <= sample.width; d += 4 * kLanes<T>) {
    multiply_back<4>(sample, x + d, dy, dx + d);
  }
  if (d + 2 * kLanes<T> <= sample.width) {
    multiply_back<2>(sample, x + d, dy, dx + d);
    d += 2 * kLanes<T>;
  }
  if (d < sample.width) multiply_back<1>(sample, x + d, dy, dx + d);
}

// ---- Batches.

// Copies the features of the samples [first, first + n) side by side.
template <class T>
void copy_in(const Sample<T>& sample, const FeatureRows<const T>& rows, int64_t first, int64_t n,
             T* out) {
  with_constant_dim(sample.pairs.dim, [&]<int64_t kDim>() {
    const size_t bytes = (kDim == 0 ? sample.pairs.dim : kDim) * sizeof(T);
    T* to = out;
    for (const T* feature : rows.first) {
      const T* from = feature + first * rows.stride;
      for (int64_t b = 0; b < n; ++b) {
        std::memcpy(to + b * sample.size(), from + b * rows.stride, bytes);
      }
      to += sample.width;
    }
  });
}

// Copies features back; the inverse of copy_in().
template <class T>
void copy_out(const Sample<T>& sample, const T* in, int64_t first, int64_t n,
              const FeatureRows<T>& rows) {
  with_constant_dim(sample.pairs.dim, [&]<int64_t kDim>() {
    const size_t bytes = (kDim == 0 ? sample.pairs.dim : kDim) * sizeof(T);
    const T* from = in;
    for (T* feature : rows.first) {
      for (int64_t b = 0; feature != nullptr && b < n; ++b) {
        std::memcpy(feature + (first + b) * rows.stride, from + b * sample.size(), bytes);
      }
      from += sample.width;
    }
  });
}

// Features without elements may have null pointers. Returns true if dim is 0; `out` is then all
// zeros.
template <class T>
bool fill_zeros_if_no_dim(const FeaturePairs& pairs, int64_t batch, T* out) {
  if (pairs.dim > 0) return false;
  std::fill_n(out, batch * pairs.count(), T{0});
  return true;
}

// Calls fn(first, n, scratch, transposed) for runs of samples whose features fit in the L1 cache,
// on several workers. Each worker has scratch memory for the features of `copies` runs, and for
// `copies` transposed samples.
template <class T, class Fn>
void for_each_run(const Sample<T>& sample, int64_t batch, int64_t copies, const Fn& fn) {
  const FeaturePairs& pairs = sample.pairs;
  if (pairs.features == 0) return;
  const int64_t bytes = std::max<int64_t>(1, sample.size() * sizeof(T));
  const int64_t run = std::max<int64_t>(1, kScratch / bytes);
  const int64_t work = std::max<int64_t>(1, pairs.features * pairs.features * pairs.dim * run);
  const int64_t grain = run * std::max<int64_t>(1, kBlockWork / work);
  parallel_for(batch, grain, [&](int64_t begin, int64_t end) {
    Scratch<T> features(copies * run * sample.size());
    // copy_in() does not write the padding of the rows, but the products read it.
    if (sample.width != pairs.dim) std::fill_n(features.data(), copies * run * sample.size(), T{0});
    Scratch<T> transposed(copies * sample.transposed_size());
    for (int64_t b = begin; b < end; b += run) {
      fn(b, std::min(run, end - b), features.data(), transposed.data());
    }
  });
}

}  // namespace

template <class T>
void dot_pairs(const FeaturePairs& pairs, int64_t batch, const FeatureRows<const T>& x, T* out) {
  if (fill_zeros_if_no_dim(pairs, batch, out)) return;
  const Sample<T> sample(pairs);
  for_each_run(sample, batch, 1, [&](int64_t first, int64_t n, T* features, T* transposed) {
    copy_in(sample, x, first, n, features);
    for (int64_t b = 0; b < n; ++b) {
      transpose_features(sample, features + b * sample.size(), transposed);
      const Term<T> term = {transposed, transposed};
      multiply<T>(sample, {&term, 1}, out + (first + b) * pairs.count());
    }
  });
}

int64_t dot_pairs_scratch(const FeaturePairs& pairs) {
  const Sample<float> sample(pairs);
  return sample.size() + sample.transposed_size();
}

void dot_pairs(const FeaturePairs& pairs, std::span<const float* const> features, float* scratch,
               float* out) {
  if (pairs.features == 0 || fill_zeros_if_no_dim(pairs, 1, out)) return;
  const Sample<float> sample(pairs);
  with_constant_dim(pairs.dim, [&]<int64_t kDim>() {
    const size_t bytes = (kDim == 0 ? pairs.dim : kDim) * sizeof(float);
    float* to = scratch;
    for (const float* feature : features) {
      std::memcpy(to, feature, bytes);
      to += sample.width;
    }
  });
  float* const transposed = scratch + sample.size();
  transpose_features(sample, scratch, transposed);
  const Term<float> term = {transposed, transposed};
  multiply<float>(sample, {&term, 1}, out);
}

template <class T>
void dot_pairs_along(const FeaturePairs& pairs, int64_t batch, const FeatureRows<const T>& x,
                     const FeatureRows<const T>& y, T* out) {
  if (fill_zeros_if_no_dim(pairs, batch, out)) return;
  const Sample<T> sample(pairs);
  for_each_run(sample, batch, 2, [&](int64_t first, int64_t n, T* features, T* transposed) {
    T* const of_x = transposed;
    T* const of_y = transposed + sample.transposed_size();
    for (int64_t b = first; b < first + n; ++b) {
      copy_in(sample, x, b, 1, features);
      transpose_features(sample, features, of_x);
      copy_in(sample, y, b, 1, features);
      transpose_features(sample, features, of_y);
      const std::array<Term<T>, 2> terms = {{{of_x, of_y}, {of_y, of_x}}};
      multiply<T>(sample, terms, out + b * pairs.count());
    }
  });
}

template <class T>
void dot_pairs_back(const FeaturePairs& pairs, int64_t batch, const FeatureRows<const T>& x,
                    const T* dy, const FeatureRows<T>& dx) {
  if (pairs.dim == 0) return;
  const Sample<T> sample(pairs);
  for_each_run(sample, batch, 2, [&](int64_t first, int64_t n, T* features, T*) {
    T* const gradients = features + n * sample.size();
    copy_in(sample, x, first, n, features);
    for (int64_t b = 0; b < n; ++b) {
      multiply_back(sample, features + b * sample.size(), dy + (first + b) * pairs.count(),
                    gradients + b * sample.size());
    }
    copy_out(sample, gradients, first, n, dx);
  });
}

template void dot_pairs(const FeaturePairs&, int64_t, const FeatureRows<const float>&, float*);
template void dot_pairs(const FeaturePairs&, int64_t, const FeatureRows<const double>&, double*);
template void dot_pairs_along(const FeaturePairs&, int64_t, const FeatureRows<const float>&,
                              const FeatureRows<const float>&, float*);
template void dot_pairs_along(const FeaturePairs&, int64_t, const FeatureRows<const double>&,
                              const FeatureRows<const double>&, double*);
template void dot_pairs_back(const FeaturePairs&, int64_t, const FeatureRows<const float>&,
                             const float*, const FeatureRows<float>&);
template void dot_pairs_back(const FeaturePairs&, int64_t, const FeatureRows<const double>&,
                             const double*, const FeatureRows<double>&);

}  // namespace keel::kernels
