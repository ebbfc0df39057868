#include "framework/kernels/gather.h"

#include <algorithm>
#include <cmath>

#include "framework/kernels/abs_max_rows.h"
#include "framework/kernels/prefetch_row.h"
#include "framework/kernels/row_sum.h"
#include "framework/parallel.h"

namespace keel::kernels {
namespace {

// Elements read per block of the workers: some 20 microseconds.
constexpr int64_t kBlockElements = int64_t{1} << 16;

int64_t samples_per_block(int64_t samples, int64_t positions, int64_t dim) {
  return std::max<int64_t>(1, kBlockElements * samples / std::max<int64_t>(1, positions * dim));
}

// Rows asked for ahead of their use, across the ends of bags: as many bytes in flight for short
// rows as for long ones.
constexpr int64_t rows_ahead(int64_t row_bytes) {
  return row_bytes >= 256 ? 32 : row_bytes >= 128 ? 64 : 96;
}

template <class T>
inline void ask_for(const T* row, int64_t dim) {
  prefetch_row</*kToWrite=*/false>(row, dim * static_cast<int64_t>(sizeof(T)));
}

// Where the row of a position stands.
template <class T>
struct RowsOfTable {
  const T* table;
  const int64_t* ids;
  const T* operator()(int64_t position, int64_t dim) const { return table + ids[position] * dim; }
};
template <class T>
struct RowsByPointer {
  const T* const* rows;
  const T* operator()(int64_t position, int64_t) const { return rows[position]; }
};

template <class Row, class T>
void copy_row(const Row* __restrict from, int64_t dim, T* __restrict to) {
  if constexpr (std::is_same_v<Row, T>) {
    std::copy_n(from, dim, to);
  } else {
    for (int64_t i = 0; i < dim; ++i) to[i] = to_float(from[i]);
  }
}

template <int64_t kDim, class Rows, class T>
void copy_rows(const Rows& rows, int64_t dim_, int64_t begin, int64_t end, T* out) {
  const int64_t dim = kDim > 0 ? kDim : dim_;
  const int64_t ahead = rows_ahead(dim * static_cast<int64_t>(sizeof(*rows(0, 0))));
  for (int64_t i = begin; i < std::min(end, begin + ahead); ++i) ask_for(rows(i, dim), dim);
  for (int64_t i = begin; i < end; ++i) {
    if (i + ahead < end) ask_for(rows(i + ahead, dim), dim);
    copy_row(rows(i, dim), dim, out + i * dim);
  }
}

template <class Rows, class T>
void gather(const Rows& rows, int64_t dim, int64_t n, T* out) {
  with_constant_dim(dim, [&]<int64_t kDim>() {
    parallel_for(n, samples_per_block(1, 1, dim),
                 [&](int64_t begin, int64_t end) { copy_rows<kDim>(rows, dim, begin, end, out); });
  });
}

template <int64_t kDim>
void copy_quantized_rows(const int8_t* codes, const float* scales, int64_t dim_, const int64_t* ids,
                         int64_t begin, int64_t end, float* out) {
  const int64_t dim = kDim > 0 ? kDim : dim_;
  const int64_t ahead = rows_ahead(dim);
  const auto ask = [&](int64_t id) {
    ask_for(codes + id * dim, dim);
    __builtin_prefetch(scales + id);
  };
  for (int64_t i = begin; i < std::min(end, begin + ahead); ++i) ask(ids[i]);
  for (int64_t i = begin; i < end; ++i) {
    if (i + ahead < end) ask(ids[i + ahead]);
    to_floats(AbsMaxRow{.codes = codes + ids[i] * dim, .scale = scales[ids[i]]}, dim,
              out + i * dim);
  }
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

// Whether a combiner divides by anything but 1: one id without a weight is its own mean.
bool divides(const Bags& bags, int64_t count, Combiner combiner) {
  return combiner != Combiner::kSum && (bags.weights != nullptr || count != 1);
}

template <int64_t kDim, bool kWeighted, class Rows, class T>
void pool_samples(const Rows& rows, int64_t dim_, const Bags& bags, Combiner combiner,
                  int64_t first, int64_t limit, T* out) {
  const int64_t dim = kDim > 0 ? kDim : dim_;
  constexpr auto kElement = static_cast<int64_t>(sizeof(*rows(0, 0)));
  const int64_t ahead = rows_ahead(dim * kElement);
  const int64_t begin = bags.splits[first];
  const int64_t last = bags.splits[limit];
  for (int64_t p = begin; p < std::min(last, begin + ahead); ++p) ask_for(rows(p, dim), dim);
  int64_t p = begin;
  for (int64_t s = first; s < limit; ++s) {
    const int64_t end = bags.splits[s + 1];
    RowSum<kDim, T> sum(dim, out + s * dim);
    for (; p < end; ++p) {
      if (p + ahead < last) ask_for(rows(p + ahead, dim), dim);
      sum.template add<kWeighted>(rows(p, dim), kWeighted ? static_cast<T>(bags.weights[p]) : T{1});
    }
    if (divides(bags, end - bags.splits[s], combiner)) {
      sum.divide(static_cast<T>(divisor_of(bags, s, combiner)));
    }
    sum.store();
  }
}

template <class Rows, class T>
void pool(const Rows& rows, int64_t dim, const Bags& bags, Combiner combiner, T* out) {
  const int64_t positions = bags.splits[bags.samples] - bags.splits[0];
  const int64_t grain = samples_per_block(bags.samples, std::max(positions, bags.samples), dim);
  with_constant_dim(dim, [&]<int64_t kDim>() {
    parallel_for(bags.samples, grain, [&](int64_t begin, int64_t end) {
      if (bags.weights == nullptr) {
        pool_samples<kDim, false>(rows, dim, bags, combiner, begin, end, out);
      } else {
        pool_samples<kDim, true>(rows, dim, bags, combiner, begin, end, out);
      }
    });
  });
}

}  // namespace

void gather_rows(const float* table, int64_t dim, const int64_t* ids, int64_t n, float* out) {
  gather(RowsOfTable{table, ids}, dim, n, out);
}

void gather_rows(const double* table, int64_t dim, const int64_t* ids, int64_t n, double* out) {
  gather(RowsOfTable{table, ids}, dim, n, out);
}

void gather_rows(const int8_t* codes, const float* scales, int64_t dim, const int64_t* ids,
                 int64_t n, float* out) {
  with_constant_dim(dim, [&]<int64_t kDim>() {
    parallel_for(n, samples_per_block(1, 1, dim), [&](int64_t begin, int64_t end) {
      copy_quantized_rows<kDim>(codes, scales, dim, ids, begin, end, out);
    });
  });
}

void gather_rows(const BFloat16* table, int64_t dim, const int64_t* ids, int64_t n, float* out) {
  gather(RowsOfTable{table, ids}, dim, n, out);
}

void gather_rows(const Float16* table, int64_t dim, const int64_t* ids, int64_t n, float* out) {
  gather(RowsOfTable{table, ids}, dim, n, out);
}

void gather_rows(const float* const* rows, int64_t dim, int64_t n, float* out) {
  gather(RowsByPointer{rows}, dim, n, out);
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
  pool(RowsOfTable{table, bags.ids}, dim, bags, combiner, out);
}

void pooled_gather(const double* table, int64_t dim, const Bags& bags, Combiner combiner,
                   double* out) {
  pool(RowsOfTable{table, bags.ids}, dim, bags, combiner, out);
}

void pooled_gather(const BFloat16* table, int64_t dim, const Bags& bags, Combiner combiner,
                   float* out) {
  pool(RowsOfTable{table, bags.ids}, dim, bags, combiner, out);
}

void pooled_gather(const Float16* table, int64_t dim, const Bags& bags, Combiner combiner,
                   float* out) {
  pool(RowsOfTable{table, bags.ids}, dim, bags, combiner, out);
}

void pool_rows(const float* const* rows, int64_t dim, const Bags& bags, Combiner combiner,
               float* out) {
  pool(RowsByPointer{rows}, dim, bags, combiner, out);
}

}  // namespace keel::kernels
