#include "framework/kernels/gather.h"

#include <algorithm>
#include <cmath>

#include "framework/parallel.h"

namespace keel::kernels {
namespace {

// Elements read per block of the workers: some 20 microseconds.
constexpr int64_t kBlockElements = int64_t{1} << 16;
// Rows asked for ahead of their use, across the ends of bags.
constexpr int64_t kAhead = 16;
constexpr int64_t kLine = 64;
constexpr int64_t kPrefetchedBytes = 512;  // the hardware follows longer rows by itself

int64_t samples_per_block(int64_t samples, int64_t positions, int64_t dim) {
  return std::max<int64_t>(1, kBlockElements * samples / std::max<int64_t>(1, positions * dim));
}

template <class T>
inline void prefetch_row(const T* row, int64_t dim) {
  const auto* bytes = reinterpret_cast<const char*>(row);
  const int64_t size = std::min(dim * static_cast<int64_t>(sizeof(T)), kPrefetchedBytes);
  for (int64_t at = 0; at < size; at += kLine) __builtin_prefetch(bytes + at);
  if (size % kLine != 0) __builtin_prefetch(bytes + size - 1);
}

// Calls fn.template operator()<kDim>() with the dimension as a constant if it is a usual one,
// else with 0.
template <class Fn>
void with_constant_dim(int64_t dim, const Fn& fn) {
  switch (dim) {
    case 8:
      return fn.template operator()<8>();
    case 16:
      return fn.template operator()<16>();
    case 32:
      return fn.template operator()<32>();
    case 64:
      return fn.template operator()<64>();
    case 128:
      return fn.template operator()<128>();
    default:
      return fn.template operator()<0>();
  }
}

template <int64_t kDim, class T>
void copy_rows(const T* table, int64_t dim_, const int64_t* ids, int64_t begin, int64_t end,
               T* out) {
  const int64_t dim = kDim > 0 ? kDim : dim_;
  for (int64_t i = begin; i < std::min(end, begin + kAhead); ++i) {
    prefetch_row(table + ids[i] * dim, dim);
  }
  for (int64_t i = begin; i < end; ++i) {
    if (i + kAhead < end) prefetch_row(table + ids[i + kAhead] * dim, dim);
    std::copy_n(table + ids[i] * dim, dim, out + i * dim);
  }
}

template <class T>
void gather(const T* table, int64_t dim, const int64_t* ids, int64_t n, T* out) {
  with_constant_dim(dim, [&]<int64_t kDim>() {
    parallel_for(n, samples_per_block(1, 1, dim), [&](int64_t begin, int64_t end) {
      copy_rows<kDim>(table, dim, ids, begin, end, out);
    });
  });
}

// Of one sample. Sums in double, so that gradients checked in double find what was divided by.
double divisor_of(const Bags& bags, int64_t sample, Combiner combiner) {
  if (combiner == Combiner::kSum) return 1;
  const int64_t begin = bags.splits[sample];
  const int64_t end = bags.splits[sample + 1];
  if (bags.weights == nullptr) {
    const auto count = static_cast<double>(end - begin);
    return combiner == Combiner::kMean ? count : std::sqrt(count);
  }
  double sum = 0;
  for (int64_t p = begin; p < end; ++p) {
    const double w = bags.weights[p];
    sum += combiner == Combiner::kMean ? w : w * w;
  }
  return combiner == Combiner::kMean ? sum : std::sqrt(sum);
}

// Sums the rows of positions [begin, end), at least one, into `sum`; `last` ends all positions.
template <bool kWeighted, class T>
inline void sum_bag(const T* table, int64_t dim, const Bags& bags, int64_t begin, int64_t end,
                    int64_t last, T* __restrict sum) {
  for (int64_t p = begin; p < end; ++p) {
    if (p + kAhead < last) prefetch_row(table + bags.ids[p + kAhead] * dim, dim);
    const T* __restrict row = table + bags.ids[p] * dim;
    const T w = kWeighted ? static_cast<T>(bags.weights[p]) : T{1};
    if (p == begin) {
      for (int64_t j = 0; j < dim; ++j) sum[j] = T{0} + (kWeighted ? w * row[j] : row[j]);
    } else {
      for (int64_t j = 0; j < dim; ++j) sum[j] += kWeighted ? w * row[j] : row[j];
    }
  }
}

// With a constant dimension the sum stays in registers until it is stored: it is never -0, so
// adding 0 is storing it, without the block copy through memory that GCC makes of an assignment.
template <int64_t kDim, bool kWeighted, class T>
inline void store_sum(const T* table, int64_t dim, const Bags& bags, int64_t sample, int64_t last,
                      T* __restrict out) {
  const int64_t begin = bags.splits[sample];
  const int64_t end = bags.splits[sample + 1];
  if (begin == end) {
    std::fill_n(out, dim, T{0});
  } else if constexpr (kDim > 0) {
    T sum[kDim];
    sum_bag<kWeighted>(table, kDim, bags, begin, end, last, sum);
    for (int64_t j = 0; j < kDim; ++j) out[j] = sum[j] + T{0};
  } else {
    sum_bag<kWeighted>(table, dim, bags, begin, end, last, out);
  }
}

template <int64_t kDim, bool kWeighted, class T>
void pool_samples(const T* table, int64_t dim_, const Bags& bags, Combiner combiner, int64_t first,
                  int64_t limit, T* out) {
  const int64_t dim = kDim > 0 ? kDim : dim_;
  const int64_t begin = bags.splits[first];
  const int64_t last = bags.splits[limit];
  for (int64_t p = begin; p < std::min(last, begin + kAhead); ++p) {
    prefetch_row(table + bags.ids[p] * dim, dim);
  }
  for (int64_t s = first; s < limit; ++s) {
    T* row = out + s * dim;
    store_sum<kDim, kWeighted>(table, dim, bags, s, last, row);
    if (combiner == Combiner::kSum) continue;
    const T divisor = static_cast<T>(divisor_of(bags, s, combiner));
    if (divisor == 0) {
      std::fill_n(row, dim, T{0});
    } else {
      for (int64_t j = 0; j < dim; ++j) row[j] /= divisor;
    }
  }
}

template <class T>
void pool(const T* table, int64_t dim, const Bags& bags, Combiner combiner, T* out) {
  const int64_t positions = bags.splits[bags.samples] - bags.splits[0];
  const int64_t grain = samples_per_block(bags.samples, std::max(positions, bags.samples), dim);
  with_constant_dim(dim, [&]<int64_t kDim>() {
    parallel_for(bags.samples, grain, [&](int64_t begin, int64_t end) {
      if (bags.weights == nullptr) {
        pool_samples<kDim, false>(table, dim, bags, combiner, begin, end, out);
      } else {
        pool_samples<kDim, true>(table, dim, bags, combiner, begin, end, out);
      }
    });
  });
}

}  // namespace

void gather_rows(const float* table, int64_t dim, const int64_t* ids, int64_t n, float* out) {
  gather(table, dim, ids, n, out);
}

void gather_rows(const double* table, int64_t dim, const int64_t* ids, int64_t n, double* out) {
  gather(table, dim, ids, n, out);
}

void pooling_gains(const Bags& bags, Combiner combiner, float* gains) {
  for (int64_t s = 0; s < bags.samples; ++s) {
    const double divisor = divisor_of(bags, s, combiner);
    for (int64_t p = bags.splits[s]; p < bags.splits[s + 1]; ++p) {
      const double w = bags.weights == nullptr ? 1.0 : bags.weights[p];
      gains[p] = divisor == 0 ? 0.0F : static_cast<float>(w / divisor);
    }
  }
}

void pooled_gather(const float* table, int64_t dim, const Bags& bags, Combiner combiner,
                   float* out) {
  pool(table, dim, bags, combiner, out);
}

void pooled_gather(const double* table, int64_t dim, const Bags& bags, Combiner combiner,
                   double* out) {
  pool(table, dim, bags, combiner, out);
}

}  // namespace keel::kernels
