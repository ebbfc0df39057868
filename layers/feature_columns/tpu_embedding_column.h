// Embedding columns whose tables are in an embedding engine (tf.tpu.experimental.embedding_column
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

// Returns the learning rate of the step that follows `global_step` completed steps.
using LearningRateFn = SharedFunction<double(int64_t global_step)>;

// Options of embedding_column.
struct EmbeddingColumnOptions {
  std::string combiner = "mean";  // "mean", "sum" or "sqrtn"
  // Unset: truncated normal, mean 0, stddev 1 / sqrt(dimension).
  std::optional<Initializer> initializer = {};
  int64_t max_sequence_length = 0;       // > 0 for sequence columns, 0 for others
  LearningRateFn learning_rate_fn = {};  // rate of the table; unset: that of its optimizer
  // The device of the lookup: empty (the engine, or the host without an engine), "cpu",
  // "tpu_tensor_core" or "tpu_embedding_core"; see check_lookup_device().
  std::string embedding_lookup_device = {};
  // The number of ids per example for lookups on a tensor core. Longer rows are truncated, shorter
  // rows are padded.
  std::optional<int64_t> tensor_core_width = {};
  // If true, lookups on the host drop negative ids, and weights that are not positive unless the
  // combiner is sum.
  bool use_safe_embedding_lookup = true;
};

// A column whose table an embedding engine or a tensor core looks up.
class TPUEmbeddingColumn final : public feature_column::FeatureColumn {
 public:
  // A nonempty collection name makes it one of the columns that share a table.
  TPUEmbeddingColumn(Categorical categorical, int64_t dimension, EmbeddingColumnOptions options,
                     std::string shared_embedding_collection_name);
  const char* class_name() const override {
    return is_shared() ? "TPUSharedEmbeddingColumn" : "TPUEmbeddingColumn";
  }
  Config get_config() const override;  // without learning_rate_fn, which only training uses

  // Return the arguments of the constructor.
  const Categorical& categorical_column() const { return categorical_; }
  int64_t dimension() const { return dimension_; }
  const EmbeddingColumnOptions& options() const { return options_; }
  // Returns whether the column shares its table, is for sequences, is looked up on a tensor core.
  bool is_shared() const { return !collection_.empty(); }
  bool is_sequence() const { return categorical_->is_sequence(); }
  bool on_tensor_core() const { return options_.embedding_lookup_device == "tpu_tensor_core"; }

  // Accessors that describe the table and the features.
  int64_t vocabulary_size() const { return categorical_->num_buckets(); }
  const std::string& feature_key() const { return categorical_->key(); }
  const std::string& weight_key() const { return categorical_->weight_key(); }  // empty: none
  // Returns the name of the table's variable: the name of the categorical column or of the
  // collection.
  const std::string& variable_name() const {
    return is_shared() ? collection_ : categorical_->name();
  }
  std::string table_name() const { return "tbl_" + variable_name(); }
  // Returns the key of the feature with the row lengths of a sequence column.
  std::string sequence_length_feature_name() const { return feature_key() + "_seq_length_"; }
  // Returns the table's checkpoint name, which is that of a run on the host: the collection, or
  // "<scope>/<column>/embedding_weights". `scope` is the layer that uses the column.
  std::string checkpoint_name(const std::string& scope) const;

 private:
  const Categorical categorical_;
  const int64_t dimension_;
  const EmbeddingColumnOptions options_;
  const std::string collection_;
};
using TPUColumn = std::shared_ptr<const TPUEmbeddingColumn>;  // a shared column

// Creates a column with its own table. Throws TypeError for a column that is not categorical or
// that hashes into buckets. Throws ValueError unless dimension is positive, for a sequence column
// without max_sequence_length, for another column with one, for an unknown device, and for
// "tpu_tensor_core" without tensor_core_width or with a sequence column.
TPUColumn embedding_column(const Column& categorical_column, int64_t dimension,
                           EmbeddingColumnOptions options = {});

// Options of shared_embedding_columns; see EmbeddingColumnOptions.
struct SharedEmbeddingColumnsOptions {
  std::string combiner = "mean";                // as in EmbeddingColumnOptions
  std::optional<Initializer> initializer = {};  // as in EmbeddingColumnOptions
  // If empty, the name is the sorted names of the columns, joined by '_', followed by
  // "_shared_embedding".
  std::string shared_embedding_collection_name = {};
  std::vector<int64_t> max_sequence_lengths = {};  // one for each column; empty: zeros
  LearningRateFn learning_rate_fn = {};            // as in EmbeddingColumnOptions
  std::string embedding_lookup_device = {};        // as in EmbeddingColumnOptions
  std::optional<int64_t> tensor_core_width = {};   // as in EmbeddingColumnOptions
  bool use_safe_embedding_lookup = true;           // as in EmbeddingColumnOptions
};
// Creates one column for each of `categorical_columns`, in their order, all with one table. Throws
// under the conditions of embedding_column. Also throws ValueError without columns, for another
// number of max_sequence_lengths, and for columns with different num_buckets.
std::vector<TPUColumn> shared_embedding_columns(const std::vector<Column>& categorical_columns,
                                                int64_t dimension,
                                                SharedEmbeddingColumnsOptions options = {});

// The result of split_sequence_columns.
struct SplitColumns {
  std::vector<Column> sequence_columns;      // those of sequences
  std::vector<Column> non_sequence_columns;  // the others
};
// Separates sequence columns from others; both keep their order. Throws TypeError for a column that
// is not a TPUEmbeddingColumn.
SplitColumns split_sequence_columns(const std::vector<Column>& columns);

// Throws ValueError for a column whose device is not supported on an accelerator: "cpu" in
// training, "tpu_embedding_core" in inference.
void check_lookup_device(const TPUEmbeddingColumn& column, bool training);

// Looks up ids like a tensor core, differentiable with respect to `table` [rows, dim]. The int32 or
// int64 ids, of any layout with rows, become [batch, width] with a mask of zeros and ones; ids of
// -1 are dropped. The output is the sum over the mask. With combiner mean it is divided by the sum
// of the mask, which gives NaN for an empty row. Throws ValueError for combiners other than sum and
// mean.
Tensor tensor_core_lookup(const TPUEmbeddingColumn& column, const Tensor& table,
                          const TensorLike& ids);

}  // namespace keel::tpu
