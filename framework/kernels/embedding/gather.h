// Gathers rows of an embedding table and pools them per sample. row_groups.h has the transpose.
//
// All functions take raw pointers and sizes. A row is `dim` contiguous elements. The caller checks
// the ids. Work is split over workers by samples; the split does not change any bit.
#pragma once

#include <cstdint>

#include <keel/framework/base/combiner.h>
#include <keel/framework/kernels/half.h>

namespace keel::kernels {

// The ids of a batch: sample s owns positions [splits[s], splits[s + 1]) of `ids` and `weights`.
struct Bags {
  const int64_t* ids;
  const int64_t* splits;  // null (only where documented): sample s owns position s alone
  int64_t samples;
  const float* weights = nullptr;  // null: every weight is 1

  // The number of positions of all samples.
  int64_t positions() const { return splits == nullptr ? samples : splits[samples] - splits[0]; }
  // The id of the first position of sample 0.
  const int64_t* first_id() const { return splits == nullptr ? ids : ids + splits[0]; }
};

// out[i] = table[ids[i]] for i < n, converted to float where the table is 16-bit. Rows of the table
// are `row_step` elements apart; a negative `row_step` means `dim`.
void gather_rows(const float* table, int64_t dim, const int64_t* ids, int64_t n, float* out,
                 int64_t row_step = -1);
void gather_rows(const double* table, int64_t dim, const int64_t* ids, int64_t n, double* out,
                 int64_t row_step = -1);
void gather_rows(const BFloat16* table, int64_t dim, const int64_t* ids, int64_t n, float* out,
                 int64_t row_step = -1);
void gather_rows(const Float16* table, int64_t dim, const int64_t* ids, int64_t n, float* out,
                 int64_t row_step = -1);
// Copies the row that rows[i] points to into out[i], for i < n.
void gather_rows(const float* const* rows, int64_t dim, int64_t n, float* out);
// out[i] = codes[ids[i]] / scales[ids[i]]: dequantizes rows (abs_max_rows.h).
void gather_rows(const int8_t* codes, const float* scales, int64_t dim, const int64_t* ids,
                 int64_t n, float* out);

// Computes the factor of each position: gains[p] = w (kSum), w / sum of w (kMean) or
// w / sqrt(sum of w^2) (kSqrtN), with sums over the sample. The factor is 0 where the divisor is 0.
void pooling_gains(const Bags& bags, Combiner combiner, float* gains);

// out[s] = (sum over the positions p of sample s, in order, of w[p] * table[ids[p]]) / divisor,
// where the divisor is 1 (kSum), the sum of w (kMean) or sqrt(sum of w^2) (kSqrtN). The output is
// zero for an empty sample and for a zero divisor. Rows of the table are `row_step` elements apart;
// a negative `row_step` means `dim`.
void pooled_gather(const float* table, int64_t dim, const Bags& bags, Combiner combiner, float* out,
                   int64_t row_step = -1);
void pooled_gather(const double* table, int64_t dim, const Bags& bags, Combiner combiner,
                   double* out, int64_t row_step = -1);
// Tables of 16-bit floats give the same bits as a float table with the same values.
void pooled_gather(const BFloat16* table, int64_t dim, const Bags& bags, Combiner combiner,
                   float* out, int64_t row_step = -1);
void pooled_gather(const Float16* table, int64_t dim, const Bags& bags, Combiner combiner,
                   float* out, int64_t row_step = -1);
// Pools like pooled_gather(), reading the row of position p from rows[p]. `bags.ids` is not read.
void pool_rows(const float* const* rows, int64_t dim, const Bags& bags, Combiner combiner,
               float* out);

}  // namespace keel::kernels
