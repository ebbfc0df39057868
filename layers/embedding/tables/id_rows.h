// A batch of ids in any layout as rows of ids with their weights: the form in which EmbedReduce and
// DistributedEmbedding look them up.
#pragma once

#include <optional>
#include <string>

#include <keel/framework/tensor_like.h>

namespace keel {

// Row r holds the ids at positions [row_splits[r], row_splits[r + 1]).
struct IdRows {
  Tensor ids;           // int64 [n]
  Tensor row_splits;    // int64 [rows + 1]
  Tensor weights = {};  // float32 [n]; empty: ones

  int64_t rows() const { return row_splits.dim(0) - 1; }
};

struct IdRowsOptions {
  int64_t vocabulary_size = 0;
  std::string combiner = "mean";
  // Ids of a sparse or ragged row beyond this many are left out; kUnknown: none are.
  int64_t max_row_length = kUnknown;
};

// ValueError, naming `caller`, unless ids of this spec are of rank 1 (dense) or 2; TypeError unless
// they are numbers.
void check_id_spec(const std::string& caller, const TensorSpec& ids);

// ValueError, naming `caller` and the position, if a weight is NaN or infinite.
void check_weights_are_finite(const std::string& caller, const Tensor& weights);  // float32

// Rows of one id each for dense ids [rows]; else the rows of dense [rows, n], sparse or ragged ids.
// `weights` are of the ids' layout and positions, or dense and a scalar or [rows]: a weight of a
// row counts for each of its ids. Weights of ids [rows] count only for the combiner sum: the mean
// of one row is the row.
// ValueError, naming `caller`, for an id outside the vocabulary, for weights of another shape, NaN
// or infinite, and as check_id_spec says; TypeError for weights of another layout.
IdRows to_id_rows(const std::string& caller, const TensorLike& ids,
                  const std::optional<TensorLike>& weights, const IdRowsOptions& options);

}  // namespace keel
