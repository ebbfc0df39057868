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

// Splits [begin, end) into blocks of at most `most` rows, of about equal size, and calls
// fn(first, rows) for each.
template <class Fn>
void in_blocks(int64_t begin, int64_t end, int64_t most, const Fn& fn) {
  const int64_t blocks = (end - begin + most - 1) / most;
  for (int64_t left = blocks; left > 0; --left) {
    const int64_t rows = (end - begin + left - 1) / left;
    fn(begin, rows);
    begin += rows;
  }
}

// Exchanges blocks of kBlock elements between two registers.
template <class T, int64_t kBlock, int64_t... k>
inline void exchange(Lanes<T>& x, Lanes<T>& y, std::integer_sequence<int64_t, k...>) {
  const Lanes<T> a = x, b = y;
  x = __builtin_shufflevector(a, b, ((k & kBlock) == 0 ? k : kLanes<T> + k - kBlock)...);
  y = __builtin_shufflevector(a, b, ((k & kBlock) == 0 ? k + kBlock : kLanes<T> + k)...);
}

// Transposes a square of lanes by exchanging blocks of 1, 2, 4, ... elements across the diagonal.
template <class T, int64_t kBlock = 1>
inline void transpose(Lanes<T> (&rows)[kLanes<T>]) {
  if constexpr (kBlock < kLanes<T>) {
#pragma GCC unroll 16
    for (int64_t row = 0; row < kLanes<T>; ++row) {
      if ((row & kBlock) == 0) {
        exchange<T, kBlock>(rows[row], rows[row + kBlock],
                            std::make_integer_sequence<int64_t, kLanes<T>>());
      }
    }
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
      Lanes<T> tile[kLanes<T>];
#pragma GCC unroll 16
      for (int64_t r = 0; r < kLanes<T>; ++r) {
        tile[r] = f + r < sample.pairs.features ? load_lanes(x + (f + r) * width + d) : Lanes<T>{};
      }
      transpose<T>(tile);
#pragma GCC unroll 16
      for (int64_t r = 0; r < kLanes<T>; ++r) store_lanes(out + (d + r) * columns + f, tile[r]);
    }
  }
}

// ---- Products of pairs. Each part whose sums must stay in registers is a function of its own,
// with unrolled loops: lambdas for the unrolled steps take GCC several times as long.

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
  Lanes<T> sums[kRows] = {};
  for (const Term<T>& term : terms) {
    const T *x = term.x + i, *y = term.y + j;
    for (int64_t d = 0; d < dim; ++d, x += columns, y += columns) {
      const Lanes<T> lanes = load_lanes(y);
#pragma GCC unroll 8
      for (int64_t r = 0; r < kRows; ++r) sums[r] = multiply_add(x[r], lanes, sums[r]);
    }
  }
#pragma GCC unroll 8
  for (int64_t r = 0; r < kRows; ++r) out[r] = sums[r];
}

constexpr int64_t kMostRows = 8;  // rows of a strip
template <class T>
using StripFunction = void (*)(const Sample<T>&, std::span<const Term<T>>, int64_t, int64_t,
                               Lanes<T>*);
// The functions of 1, 2, ..., kMostRows rows.
template <class T, int64_t... kLess>
constexpr std::array<StripFunction<T>, kMostRows> strip_functions(
    std::integer_sequence<int64_t, kLess...>) {
  return {strip_products<kLess + 1, T>...};
}

// Computes out[pair (i, j)] = sum over terms of x_i . y_j. Registers are stored whole. The excess
// lanes overwrite pairs that are stored later, which fixes the order: rows with the same number of
// strips of partners are processed together, and their last strip, the only partial one, is stored
// first.
template <class T>
void multiply(const Sample<T>& sample, std::span<const Term<T>> terms, T* out) {
  static constexpr auto kFunctions =
      strip_functions<T>(std::make_integer_sequence<int64_t, kMostRows>());
  const FeaturePairs& pairs = sample.pairs;
  int64_t first = pairs.self ? 0 : 1;
  for (int64_t last_strip = 0; first < pairs.features; last_strip += kLanes<T>) {
    const int64_t end = std::min(first + kLanes<T>, pairs.features);
    in_blocks(first, end, kMostRows, [&](int64_t i, int64_t rows) {
      for (int64_t j = last_strip; j >= 0; j -= kLanes<T>) {
        Lanes<T> sums[kMostRows];
        kFunctions[rows - 1](sample, terms, i, j, sums);
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

// Adds factors[r] times `feature` to every row r.
template <int64_t kRows, int64_t kColumns, class T>
[[gnu::always_inline]] inline void add_to_rows(const T* feature, const T (&factors)[kRows],
                                               Lanes<T> (&sums)[kRows][kColumns]) {
  Lanes<T> other[kColumns];
#pragma GCC unroll 4
  for (int64_t c = 0; c < kColumns; ++c) other[c] = load_lanes(feature + c * kLanes<T>);
#pragma GCC unroll 9
  for (int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int64_t c = 0; c < kColumns; ++c) {
      sums[r][c] = multiply_add(factors[r], other[c], sums[r][c]);
    }
  }
}

// Computes the gradients of the features [i, i + kRows), in kColumns registers each.
template <int64_t kRows, int64_t kColumns, class T>
[[gnu::noinline, gnu::flatten]] void rows_back(const Sample<T>& sample, const T* x, const T* dy,
                                               int64_t i, T* dx) {
  const FeaturePairs& pairs = sample.pairs;
  const int64_t width = sample.width;
  Lanes<T> sums[kRows][kColumns] = {};
  const T* partners[kRows];
  T factors[kRows];
#pragma GCC unroll 9
  for (int64_t r = 0; r < kRows; ++r) partners[r] = dy + pairs.before(i + r);
  // Pair (i, i) is x_i . x_i, whose gradient is 2 x_i.
  if (pairs.self) {
#pragma GCC unroll 9
    for (int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int64_t c = 0; c < kColumns; ++c) {
        const Lanes<T> own = load_lanes(x + (i + r) * width + c * kLanes<T>);
        sums[r][c] = 2 * partners[r][i + r] * own;
      }
    }
  }
  for (int64_t j = 0; j < i; ++j) {
#pragma GCC unroll 9
    for (int64_t r = 0; r < kRows; ++r) factors[r] = partners[r][j];
    add_to_rows(x + j * width, factors, sums);
  }
#pragma GCC unroll 9
  for (int64_t q = 0; q < kRows; ++q) {  // the features of the block, each for the other rows
    const T* const feature = x + (i + q) * width;
#pragma GCC unroll 9
    for (int64_t r = 0; r < kRows; ++r) {
      if (r == q) continue;
      const T factor = r > q ? partners[r][i + q] : partners[q][i + r];
#pragma GCC unroll 4
      for (int64_t c = 0; c < kColumns; ++c) {
        sums[r][c] = multiply_add(factor, load_lanes(feature + c * kLanes<T>), sums[r][c]);
      }
    }
  }
  const T* column = dy + pairs.before(i + kRows) + i;
  for (int64_t j = i + kRows; j < pairs.features; column += pairs.partners(j), ++j) {
#pragma GCC unroll 9
    for (int64_t r = 0; r < kRows; ++r) factors[r] = column[r];
    add_to_rows(x + j * width, factors, sums);
  }
#pragma GCC unroll 9
  for (int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int64_t c = 0; c < kColumns; ++c) {
      store_lanes(dx + r * width + c * kLanes<T>, sums[r][c]);
    }
  }
}

template <class T>
using RowsBackFunction = void (*)(const Sample<T>&, const T*, const T*, int64_t, T*);
// The functions of 1, 2, ... rows of kColumns registers.
template <int64_t kColumns, class T, int64_t... kLess>
constexpr std::array<RowsBackFunction<T>, sizeof...(kLess)> rows_back_functions(
    std::integer_sequence<int64_t, kLess...>) {
  return {rows_back<kLess + 1, kColumns, T>...};
}

template <int64_t kColumns, class T>
void multiply_back(const Sample<T>& sample, const T* x, const T* dy, T* dx) {
  constexpr int64_t kMost = std::max<int64_t>(1, std::min<int64_t>(9, kSums / kColumns));
  static constexpr auto kFunctions =
      rows_back_functions<kColumns, T>(std::make_integer_sequence<int64_t, kMost>());
  in_blocks(0, sample.pairs.features, kMost, [&](int64_t i, int64_t rows) {
    kFunctions[rows - 1](sample, x, dy, i, dx + i * sample.width);
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
