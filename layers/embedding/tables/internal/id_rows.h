// Converts a batch of ids of any layout to rows of weighted ids, the form in which EmbedReduce and
// DistributedEmbedding look them up.
#pragma once

#include <optional>
#include <span>
#include <string>

#include <keel/distribute/dynamic/dynamic_vocabulary.h>
#include <keel/framework/tensor_like.h>

namespace keel {

// Ids grouped by row. Row r holds the ids at positions [row_splits[r], row_splits[r + 1]).
struct IdRows {
  Tensor ids;           // int64 [n], or string [n] for a table with string ids
  Tensor row_splits;    // int64 [rows + 1]
  Tensor weights = {};  // float32 [n]; empty: ones

  // Returns the number of rows.
  int64_t rows() const { return row_splits.dim(0) - 1; }
};

// Options of to_id_rows.
struct IdRowsOptions {
  int64_t vocabulary_size = 0;
  std::string combiner = "mean";
  // Ids of a sparse or ragged row beyond this number are dropped. kUnknown: no limit.
  int64_t max_row_length = kUnknown;
};

// Throws ValueError, naming `caller`, unless ids with this spec are numbers and have rank 2, or
// rank 1 if dense.
void check_id_spec(const std::string& caller, const TensorSpec& ids);

// Throws ValueError, naming `caller` and the position, if a weight is NaN or infinite.
void check_weights_are_finite(const std::string& caller, const Tensor& weights);  // float32

// Converts ids to rows. Dense ids [rows] give rows of one id each; dense ids [rows, n], sparse ids
// and ragged ids keep their rows.
// `weights` have the ids' layout and positions, or are dense with shape [] or [rows]; then the
// weight of a row applies to each of its ids. Weights of ids [rows] only affect the combiner sum,
// because the mean of one row is the row.
// Throws ValueError, naming `caller`, for an id outside the vocabulary; for weights of another
// shape, NaN or infinite; and under the conditions of check_id_spec. Throws TypeError for weights
// of another layout.
IdRows to_id_rows(const std::string& caller, const TensorLike& ids,
                  const std::optional<TensorLike>& weights, const IdRowsOptions& options);

// The same for a table with dynamic ids; `vocabulary_size` is not used, and every id is valid.
IdRows to_key_rows(const std::string& caller, KeyType type, const TensorLike& ids,
                   const std::optional<TensorLike>& weights, const IdRowsOptions& options);
// Throws TypeError, naming `caller`, unless ids have the type of the keys: strings, or int32 or
// int64.
void check_key_type(const std::string& caller, KeyType type, DType ids);
// Does the same, and throws ValueError for ids of another rank than check_id_spec() accepts.
void check_key_spec(const std::string& caller, KeyType type, const TensorSpec& ids);
// Returns ids as int64 or strings. Throws TypeError like check_key_type().
Tensor key_values(const std::string& caller, KeyType type, const Tensor& ids);
// Returns the keys at these positions.
Tensor keys_at(const Tensor& keys, std::span<const int64_t> positions);
// Returns `input` with other values.
TensorLike with_values(const TensorLike& input, const Tensor& values);

}  // namespace keel
