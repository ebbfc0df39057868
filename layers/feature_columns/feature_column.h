// Feature columns: describe the features that a model uses and their conversion
// (tf.feature_column).
//
//   numeric column      passes numbers through
//   categorical column  converts the words or numbers of a feature to ids in [0, num_buckets)
//   embedding column    looks up the ids of a categorical column in a table
//
// Columns are immutable descriptions without weights. The columns of
// layers/feature_columns/tpu_embedding_column.h place their tables in an embedding engine.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/framework/initializers.h>
#include <keel/framework/tensor_like.h>

namespace keel::feature_column {

// The base of all columns.
class FeatureColumn {
 public:
  virtual ~FeatureColumn() = default;
  FeatureColumn(const FeatureColumn&) = delete;
  FeatureColumn& operator=(const FeatureColumn&) = delete;
  // Returns the name, which identifies the column. Layers concatenate columns in ascending order of
  // names.
  const std::string& name() const { return name_; }
  // Returns the class name for files.
  virtual const char* class_name() const = 0;
  // Returns the config from which an equal column can be created (dense_features.h).
  virtual Config get_config() const = 0;

 protected:
  // Stores the name.
  explicit FeatureColumn(std::string name) : name_(std::move(name)) {}

 private:
  const std::string name_;
};
using Column = std::shared_ptr<const FeatureColumn>;  // a shared column

// Options of numeric_column.
struct NumericOptions {
  Shape shape = {1};                                        // shape of one example
  std::function<Tensor(const Tensor&)> normalizer_fn = {};  // applied to the float32 values
};

// Passes the numbers of a dense feature through, optionally normalized.
class NumericColumn final : public FeatureColumn {
 public:
  // See numeric_column(), which also checks the options.
  NumericColumn(const std::string& key, NumericOptions options)
      : FeatureColumn(key), options_(std::move(options)) {}
  const char* class_name() const override { return "NumericColumn"; }
  Config get_config() const override;  // throws NotImplementedError with a normalizer_fn
  // Returns the key of the feature.
  const std::string& key() const { return name(); }
  // Returns the feature as float32 [batch, size of shape]. A symbolic feature gives a symbolic
  // tensor. Throws ValueError for a feature of another shape, and TypeError for a feature that is
  // not a dense tensor of numbers.
  Tensor dense_tensor(const TensorLike& feature) const;

 private:
  const NumericOptions options_;
};

// Converts a feature to ids in [0, num_buckets).
class CategoricalColumn final : public FeatureColumn {
 public:
  // Selects how words and numbers are mapped to ids.
  enum class Kind { kIdentity, kVocabularyList, kVocabularyFile, kHashBucket };
  struct Parts;

  explicit CategoricalColumn(Parts parts);  // see the functions below
  const char* class_name() const override;
  Config get_config() const override;
  Kind kind() const;                      // how words are mapped
  const std::string& key() const;         // key of the feature with the words or numbers
  const std::string& weight_key() const;  // key of the feature with the weights; empty: none
  int64_t num_buckets() const;            // number of ids
  bool is_sequence() const;               // ids at position t belong to step t

  // Returns the int64 ids of a feature. Sparse and ragged features keep their positions. Dense
  // features of rank 1 and 2 become sparse [batch, n] without missing values, which are "" and -1.
  // An unknown word gets the default_value, or -1, which the estimator's lookups drop.
  // Throws ValueError if a number of an identity column is outside its buckets and there is no
  // default_value. Throws TypeError for words of another dtype than the column's.
  TensorLike transform_feature(const TensorLike& feature) const;

  // Return this column with weights, or for sequences.
  std::shared_ptr<const CategoricalColumn> weighted_by(const std::string& weight_key) const;
  std::shared_ptr<const CategoricalColumn> as_sequence() const;

 private:
  const std::shared_ptr<const Parts> parts_;
};
using Categorical = std::shared_ptr<const CategoricalColumn>;  // a shared categorical column

// An ordinary embedding column. Its table is a variable of the model on the host, trained by the
// model's optimizer.
class EmbeddingColumn final : public FeatureColumn {
 public:
  // See embedding_column(), which also checks the arguments.
  EmbeddingColumn(Categorical categorical, int64_t dimension, std::string combiner,
                  std::optional<Initializer> initializer);
  const char* class_name() const override { return "EmbeddingColumn"; }
  Config get_config() const override;
  // Return the arguments of embedding_column().
  const Categorical& categorical_column() const { return categorical_; }
  int64_t dimension() const { return dimension_; }
  const std::string& combiner() const { return combiner_; }
  const std::optional<Initializer>& initializer() const { return initializer_; }

 private:
  const Categorical categorical_;
  const int64_t dimension_;
  const std::string combiner_;
  const std::optional<Initializer> initializer_;
};

// Creates a numeric column. Throws ValueError unless the shape is fully defined and not empty.
std::shared_ptr<const NumericColumn> numeric_column(const std::string& key,
                                                    NumericOptions options = {});

// Creates a column whose numbers are the ids. A number outside [0, num_buckets) becomes
// default_value. Throws ValueError unless num_buckets is positive and default_value, if set, is a
// bucket.
Categorical categorical_column_with_identity(const std::string& key, int64_t num_buckets,
                                             std::optional<int64_t> default_value = {});

// Options of columns with a vocabulary.
struct VocabularyOptions {
  int64_t default_value = -1;  // id of unknown words; -1: lookups drop them
  int64_t num_oov_buckets =
      0;  // number of ids after the vocabulary; unknown words are hashed to them
};
// Creates a column in which word i of the list has id i. Throws ValueError for an empty list, a
// duplicate word, a negative num_oov_buckets, and num_oov_buckets together with default_value.
Categorical categorical_column_with_vocabulary_list(const std::string& key,
                                                    const std::vector<std::string>& words,
                                                    const VocabularyOptions& options = {});
Categorical categorical_column_with_vocabulary_list(const std::string& key,
                                                    const std::vector<int64_t>& numbers,
                                                    const VocabularyOptions& options = {});
// Creates a column in which line i of the file has id i. If vocabulary_size is set, only the first
// vocabulary_size lines are used. Throws IoError if the file cannot be read, and ValueError if it
// is shorter.
Categorical categorical_column_with_vocabulary_file(const std::string& key,
                                                    const std::string& vocabulary_file,
                                                    std::optional<int64_t> vocabulary_size = {},
                                                    const VocabularyOptions& options = {});

// Creates a column whose ids are FarmHash64 of the word modulo hash_bucket_size, as in TensorFlow.
// Integers are hashed as their decimal digits.
Categorical categorical_column_with_hash_bucket(const std::string& key, int64_t hash_bucket_size);

// Returns the column with weights: each id has the weight at the same position of feature
// `weight_feature_key`. Throws TypeError for a column that is not categorical, and ValueError for
// one that already has weights.
Categorical weighted_categorical_column(const Column& categorical_column,
                                        const std::string& weight_feature_key);

// Create columns of the same kinds for sequences: an id at position t of an example is step t.
Categorical sequence_categorical_column_with_identity(const std::string& key, int64_t num_buckets,
                                                      std::optional<int64_t> default_value = {});
Categorical sequence_categorical_column_with_vocabulary_list(const std::string& key,
                                                             const std::vector<std::string>& words,
                                                             const VocabularyOptions& options = {});
Categorical sequence_categorical_column_with_vocabulary_file(
    const std::string& key, const std::string& vocabulary_file,
    std::optional<int64_t> vocabulary_size = {}, const VocabularyOptions& options = {});

// Options of embedding_column.
struct EmbeddingColumnOptions {
  std::string combiner = "mean";  // "mean", "sum" or "sqrtn"
  // Unset: truncated normal, mean 0, stddev 1 / sqrt(dimension).
  std::optional<Initializer> initializer = {};
};
// Creates an ordinary embedding column with the name "<name of the categorical column>_embedding".
// Throws TypeError for a column that is not categorical, and ValueError unless dimension is
// positive and the combiner is known.
std::shared_ptr<const EmbeddingColumn> embedding_column(const Column& categorical_column,
                                                        int64_t dimension,
                                                        EmbeddingColumnOptions options = {});

// Returns `column` as a categorical column. Throws TypeError, naming `caller`, for another column
// or null.
Categorical require_categorical(const Column& column, const char* caller);

}  // namespace keel::feature_column
