// Gathering rows of a table, pooling them, and the transpose of that.
//
// Raw pointers and sizes; rows are contiguous runs of `dim` elements. Ids are checked by the
// caller. Work is cut by samples in fixed blocks.
#pragma once

#include <cstdint>

#include <keel/framework/kernels/half.h>

namespace keel::kernels {

enum class Combiner { kSum, kMean, kSqrtN };

// The ids of a batch: sample s owns positions [splits[s], splits[s + 1]) of `ids` and `weights`.
struct Bags {
  const int64_t* ids;
  const int64_t* splits;  // null, where that is said: sample s has the one position s
  int64_t samples;
  const float* weights = nullptr;  // null: all ones

  int64_t positions() const { return splits == nullptr ? samples : splits[samples] - splits[0]; }
  const int64_t* first_id() const { return splits == nullptr ? ids : ids + splits[0]; }
};

// out[i] = table[ids[i]], i < n. Rows are row_step elements apart; negative: dim.
void gather_rows(const float* table, int64_t dim, const int64_t* ids, int64_t n, float* out,
                 int64_t row_step = -1);
void gather_rows(const double* table, int64_t dim, const int64_t* ids, int64_t n, double* out,
                 int64_t row_step = -1);
void gather_rows(const BFloat16* table, int64_t dim, const int64_t* ids, int64_t n, float* out,
                 int64_t row_step = -1);
void gather_rows(const Float16* table, int64_t dim, const int64_t* ids, int64_t n, float* out,
                 int64_t row_step = -1);
// out[i] = the row that rows[i] points to.
void gather_rows(const float* const* rows, int64_t dim, int64_t n, float* out);
// out[i] = codes[ids[i]] / scales[ids[i]] (abs_max_rows.h).
void gather_rows(const int8_t* codes, const float* scales, int64_t dim, const int64_t* ids,
                 int64_t n, float* out);

// The factor of each position: w (sum), w / sum of w (mean), w / sqrt(sum of w^2) (sqrtn), sums
// over the sample; 0 where the divisor is 0. gains[p] for every position p.
void pooling_gains(const Bags& bags, Combiner combiner, float* gains);

// out[s] = divisor(s)^-1 * sum over positions p of s, in order, of w[p] * table[ids[p]];
// the divisor is 1, sum of w or sqrt(sum of w^2). Zeros for an empty sample and a zero divisor.
// Rows are row_step elements apart; negative: dim.
void pooled_gather(const float* table, int64_t dim, const Bags& bags, Combiner combiner, float* out,
                   int64_t row_step = -1);
void pooled_gather(const double* table, int64_t dim, const Bags& bags, Combiner combiner,
                   double* out, int64_t row_step = -1);
// What a table of the rows' floats gives, bit for bit.
void pooled_gather(const BFloat16* table, int64_t dim, const Bags& bags, Combiner combiner,
                   float* out, int64_t row_step = -1);
void pooled_gather(const Float16* table, int64_t dim, const Bags& bags, Combiner combiner,
                   float* out, int64_t row_step = -1);
// The same with rows[p] for the row of position p; `ids` are not looked at.
void pool_rows(const float* const* rows, int64_t dim, const Bags& bags, Combiner combiner,
               float* out);

}  // namespace keel::kernels
