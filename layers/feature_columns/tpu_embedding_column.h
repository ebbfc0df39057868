// Embedding columns whose tables live on an embedding engine (tf.tpu.experimental.embedding_column
// and shared_embedding_columns).
//
//   auto a = feature_column::categorical_column_with_identity("a", 1000);
//   auto b = feature_column::categorical_column_with_identity("b", 1000);
//   auto own = tpu::embedding_column(a, 10);
//   auto shared = tpu::shared_embedding_columns({a, b}, 10);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/framework/base/shared_function.h>
#include <keel/layers/feature_columns/feature_column.h>

namespace keel::tpu {

using feature_column::Categorical;
using feature_column::Column;

// The rate of the step after `global_step` completed ones.
using LearningRateFn = SharedFunction<double(int64_t global_step)>;

struct EmbeddingColumnOptions {
  std::string combiner = "mean";
  // Unset: truncated normal, mean 0, stddev 1 / sqrt(dimension).
  std::optional<Initializer> initializer = {};
  int64_t max_sequence_length = 0;  // positive for a sequence column, 0 for another
  LearningRateFn learning_rate_fn = {};
  // Where ids are looked up: empty (the engine, or the host where there is none), "cpu",
  // "tpu_tensor_core" or "tpu_embedding_core"; see check_lookup_device().
  std::string embedding_lookup_device = {};
  // Ids of an example that a tensor core looks up: longer rows are cut, shorter ones padded.
  std::optional<int64_t> tensor_core_width = {};
  // On the host: leave out negative ids, and weights that are not positive unless the combiner is
  // sum.
  bool use_safe_embedding_lookup = true;
};

class TPUEmbeddingColumn final : public feature_column::FeatureColumn {
 public:
  // With a name of the collection it is one of the columns that share a table.
  TPUEmbeddingColumn(Categorical categorical, int64_t dimension, EmbeddingColumnOptions options,
                     std::string shared_embedding_collection_name);
  const char* class_name() const override {
    return is_shared() ? "TPUSharedEmbeddingColumn" : "TPUEmbeddingColumn";
  }
  Config get_config() const override;  // without learning_rate_fn, which only training asks for

  const Categorical& categorical_column() const { return categorical_; }
  int64_t dimension() const { return dimension_; }
  const EmbeddingColumnOptions& options() const { return options_; }
  bool is_shared() const { return !collection_.empty(); }
  bool is_sequence() const { return categorical_->is_sequence(); }
  bool on_tensor_core() const { return options_.embedding_lookup_device == "tpu_tensor_core"; }

  int64_t vocabulary_size() const { return categorical_->num_buckets(); }
  const std::string& feature_key() const { return categorical_->key(); }
  const std::string& weight_key() const { return categorical_->weight_key(); }  // empty: none
  // Of the table: the categorical column's name, or that of the collection.
  const std::string& variable_name() const {
    return is_shared() ? collection_ : categorical_->name();
  }
  std::string table_name() const { return "tbl_" + variable_name(); }
  // Of the feature with the lengths of a sequence column's rows.
  std::string sequence_length_feature_name() const { return feature_key() + "_seq_length_"; }
  // The table's name in a checkpoint, as a run on the host gives it: the collection, or
  // "<scope>/<column>/embedding_weights", `scope` being the layer that takes the column.
  std::string checkpoint_name(const std::string& scope) const;

 private:
  const Categorical categorical_;
  const int64_t dimension_;
  const EmbeddingColumnOptions options_;
  const std::string collection_;
};
using TPUColumn = std::shared_ptr<const TPUEmbeddingColumn>;

// TypeError for a column that is not categorical or hashes into buckets; ValueError unless
// dimension is positive, for a sequence column without max_sequence_length and another with one,
// for an unknown device, and for "tpu_tensor_core" without tensor_core_width or with a sequence
// column.
TPUColumn embedding_column(const Column& categorical_column, int64_t dimension,
                           EmbeddingColumnOptions options = {});

struct SharedEmbeddingColumnsOptions {
  std::string combiner = "mean";
  std::optional<Initializer> initializer = {};
  // Empty: the columns' names, sorted, joined by '_', and "_shared_embedding".
  std::string shared_embedding_collection_name = {};
  std::vector<int64_t> max_sequence_lengths = {};  // one for each column; empty: zeros
  LearningRateFn learning_rate_fn = {};
  std::string embedding_lookup_device = {};
  std::optional<int64_t> tensor_core_width = {};
  bool use_safe_embedding_lookup = true;
};
// One column for each of `categorical_columns`, in their order, all on one table. Errors as
// embedding_column, and ValueError for no columns, another number of max_sequence_lengths, and
// columns of different num_buckets.
std::vector<TPUColumn> shared_embedding_columns(const std::vector<Column>& categorical_columns,
                                                int64_t dimension,
                                                SharedEmbeddingColumnsOptions options = {});

struct SplitColumns {
  std::vector<Column> sequence_columns;
  std::vector<Column> non_sequence_columns;
};
// Both in the order given. TypeError for a column that is none of this file's.
SplitColumns split_sequence_columns(const std::vector<Column>& columns);

// ValueError for a column whose device does not serve: "cpu" in training on an accelerator,
// "tpu_embedding_core" in inference on one.
void check_lookup_device(const TPUEmbeddingColumn& column, bool training);

// The lookup of a tensor core, differentiable with respect to `table` [rows, dim]: ids, int32 or
// int64 of any layout with rows, become [batch, width] with a mask of zeros and ones, -1 left out;
// the result is the sum over the mask, or with combiner mean that divided by the mask's sum: NaN
// for an empty row, as a plain division gives. ValueError for another combiner.
Tensor tensor_core_lookup(const TPUEmbeddingColumn& column, const Tensor& table,
                          const TensorLike& ids);

}  // namespace keel::tpu
