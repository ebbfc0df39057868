#include <keel/framework/kernels/embedding/gather.h>

#include <algorithm>
#include <cmath>

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/embedding/abs_max_rows.h>
#include <keel/framework/kernels/embedding/row_prefetcher.h>
#include <keel/framework/kernels/embedding/row_sum.h>

namespace keel::kernels {
namespace {

// Elements read per parallel block: about 20 microseconds.
constexpr int64_t kBlockElements = int64_t{1} << 16;

int64_t samples_per_block(int64_t samples, int64_t positions, int64_t dim) {
  // A block starts by prefetching its first rows and waits for them. If the blocks would run one
  // after the other, one block avoids repeating this wait.
  if (parallel_runs_in_place()) return std::max<int64_t>(1, samples);
  return std::max<int64_t>(1, kBlockElements * samples / std::max<int64_t>(1, positions * dim));
}

int64_t step_or(int64_t row_step, int64_t dim) { return row_step < 0 ? dim : row_step; }

// Locates the row of a position in a table or through a list of pointers.
template <class T>
struct RowsOfTable {
  const T* table;
  const int64_t* ids;
  int64_t row_step;
  const T* operator()(int64_t position) const { return table + ids[position] * row_step; }
};
// Clang 16 does not deduce template arguments of aggregates.
template <class T>
RowsOfTable(const T*, const int64_t*, int64_t) -> RowsOfTable<T>;
template <class T>
struct RowsByPointer {
  const T* const* rows;
  const T* operator()(int64_t position) const { return rows[position]; }
};
template <class T>
RowsByPointer(const T* const*) -> RowsByPointer<T>;

// Prefetches the row of a position.
template <int64_t kDim, class Rows>
struct PrefetchRowAt {
  const Rows& rows;
  const int64_t dim;
  template <Into kInto>
  void operator()(int64_t position) const {
    const auto* const row = rows(position);
    prefetch_row<kInto>(row, (kDim > 0 ? kDim : dim) * static_cast<int64_t>(sizeof(*row)));
  }
};
template <int64_t kDim, bool kIntoL2, class Rows>
auto make_prefetcher(const Rows& rows, int64_t dim, int64_t begin, int64_t end) {
  constexpr auto kElement = static_cast<int64_t>(sizeof(*rows(0)));
  using Prefetch = PrefetchRowAt<kDim, Rows>;
  return RowPrefetcher<kIntoL2, kDim * kElement, Prefetch>(Prefetch{rows, dim}, dim * kElement,
                                                           begin, end);
}

// Calls fn.template operator()<kDim, kIntoL2>() with the constants for this dimension and
// processor.
template <class Fn>
void with_loop(int64_t dim, const Fn& fn) {
  with_constant_dim(dim, [&]<int64_t kDim>() {
    kPrefetchesIntoL2 ? fn.template operator()<kDim, true>()
                      : fn.template operator()<kDim, false>();
  });
}

template <class Row, class T>
void copy_row(const Row* __restrict from, int64_t dim, T* __restrict to) {
  if constexpr (std::is_same_v<Row, T>) {
    std::copy_n(from, dim, to);
  } else {
    for (int64_t i = 0; i < dim; ++i) to[i] = to_float(from[i]);
  }
}

template <int64_t kDim, bool kIntoL2, class Rows, class T>
void copy_rows(const Rows& rows, int64_t dim_, int64_t begin, int64_t end, T* out) {
  const int64_t dim = kDim > 0 ? kDim : dim_;
  const auto ahead = make_prefetcher<kDim, kIntoL2>(rows, dim, begin, end);
  for (int64_t i = begin; i < end; ++i) {
    ahead.pass(i);
    copy_row(rows(i), dim, out + i * dim);
  }
}

template <class Rows, class T>
void gather(const Rows& rows, int64_t dim, int64_t n, T* out) {
  with_loop(dim, [&]<int64_t kDim, bool kIntoL2>() {
    parallel_for(n, samples_per_block(n, n, dim), [&](int64_t begin, int64_t end) {
      copy_rows<kDim, kIntoL2>(rows, dim, begin, end, out);
    });
  });
}

template <int64_t kDim, bool kIntoL2>
void copy_quantized_rows(const int8_t* codes, const float* scales, int64_t dim_, const int64_t* ids,
                         int64_t begin, int64_t end, float* out) {
  const int64_t dim = kDim > 0 ? kDim : dim_;
  const auto prefetch = [&]<Into kInto>(int64_t i) {
    prefetch_row<kInto>(codes + ids[i] * dim, dim);
    __builtin_prefetch(scales + ids[i]);
  };
  const RowPrefetcher<kIntoL2, kDim, decltype(prefetch)> ahead(prefetch, dim, begin, end);
  for (int64_t i = begin; i < end; ++i) {
    ahead.pass(i);
    to_floats(AbsMaxRow{.codes = codes + ids[i] * dim, .scale = scales[ids[i]]}, dim,
              out + i * dim);
  }
}

// Returns the divisor of a sample. Sums in double, so that gradient checks in double see the same
// divisor.
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

// Returns whether the combiner divides by anything but 1: a single id without a weight is its own
// mean.
bool divides(const Bags& bags, int64_t count, Combiner combiner) {
  return combiner != Combiner::kSum && (bags.weights != nullptr || count != 1);
}

template <int64_t kDim, bool kIntoL2, bool kWeighted, class Rows, class T>
void pool_samples(const Rows& rows, int64_t dim_, const Bags& bags, Combiner combiner,
                  int64_t first, int64_t limit, T* out) {
  const int64_t dim = kDim > 0 ? kDim : dim_;
  int64_t p = bags.splits[first];
  const auto ahead = make_prefetcher<kDim, kIntoL2>(rows, dim, p, bags.splits[limit]);
  for (int64_t s = first; s < limit; ++s) {
    const int64_t end = bags.splits[s + 1];
    RowSum<kDim, T> sum(dim, out + s * dim);
    for (; p < end; ++p) {
      ahead.pass(p);
      sum.template add<kWeighted>(rows(p), kWeighted ? static_cast<T>(bags.weights[p]) : T{1});
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
  with_loop(dim, [&]<int64_t kDim, bool kIntoL2>() {
    parallel_for(bags.samples, grain, [&](int64_t begin, int64_t end) {
      if (bags.weights == nullptr) {
        pool_samples<kDim, kIntoL2, false>(rows, dim, bags, combiner, begin, end, out);
      } else {
        pool_samples<kDim, kIntoL2, true>(rows, dim, bags, combiner, begin, end, out);
      }
    });
  });
}

}  // namespace

void gather_rows(const float* table, int64_t dim, const int64_t* ids, int64_t n, float* out,
                 int64_t row_step) {
  gather(RowsOfTable{table, ids, step_or(row_step, dim)}, dim, n, out);
}

void gather_rows(const double* table, int64_t dim, const int64_t* ids, int64_t n, double* out,
                 int64_t row_step) {
  gather(RowsOfTable{table, ids, step_or(row_step, dim)}, dim, n, out);
}

void gather_rows(const int8_t* codes, const float* scales, int64_t dim, const int64_t* ids,
                 int64_t n, float* out) {
  with_loop(dim, [&]<int64_t kDim, bool kIntoL2>() {
    parallel_for(n, samples_per_block(n, n, dim), [&](int64_t begin, int64_t end) {
      copy_quantized_rows<kDim, kIntoL2>(codes, scales, dim, ids, begin, end, out);
    });
  });
}

void gather_rows(const BFloat16* table, int64_t dim, const int64_t* ids, int64_t n, float* out,
                 int64_t row_step) {
  gather(RowsOfTable{table, ids, step_or(row_step, dim)}, dim, n, out);
}

void gather_rows(const Float16* table, int64_t dim, const int64_t* ids, int64_t n, float* out,
                 int64_t row_step) {
  gather(RowsOfTable{table, ids, step_or(row_step, dim)}, dim, n, out);
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

void pooled_gather(const float* table, int64_t dim, const Bags& bags, Combiner combiner, float* out,
                   int64_t row_step) {
  pool(RowsOfTable{table, bags.ids, step_or(row_step, dim)}, dim, bags, combiner, out);
}

void pooled_gather(const double* table, int64_t dim, const Bags& bags, Combiner combiner,
                   double* out, int64_t row_step) {
  pool(RowsOfTable{table, bags.ids, step_or(row_step, dim)}, dim, bags, combiner, out);
}

void pooled_gather(const BFloat16* table, int64_t dim, const Bags& bags, Combiner combiner,
                   float* out, int64_t row_step) {
  pool(RowsOfTable{table, bags.ids, step_or(row_step, dim)}, dim, bags, combiner, out);
}

void pooled_gather(const Float16* table, int64_t dim, const Bags& bags, Combiner combiner,
                   float* out, int64_t row_step) {
  pool(RowsOfTable{table, bags.ids, step_or(row_step, dim)}, dim, bags, combiner, out);
}

void pool_rows(const float* const* rows, int64_t dim, const Bags& bags, Combiner combiner,
               float* out) {
  pool(RowsByPointer{rows}, dim, bags, combiner, out);
}

}  // namespace keel::kernels
