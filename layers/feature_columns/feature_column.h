// Feature columns: which of a batch's features a model takes, and in which form
// (tf.feature_column).
//
//   numeric column      passes numbers on
//   categorical column  turns a feature's words or numbers into ids in [0, num_buckets)
//   embedding column    stands for rows of a table, looked up by a categorical column's ids
//
// Columns are immutable and say what is wanted; they hold no weights. The kinds of
// layers/feature_columns/tpu_embedding_column.h put tables on an embedding engine.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/framework/initializers.h>
#include <keel/framework/tensor_like.h>

namespace keel::feature_column {

class FeatureColumn {
 public:
  virtual ~FeatureColumn() = default;
  FeatureColumn(const FeatureColumn&) = delete;
  FeatureColumn& operator=(const FeatureColumn&) = delete;
  // Tells columns apart; layers concatenate columns in ascending order of it.
  const std::string& name() const { return name_; }
  virtual const char* class_name() const = 0;
  // What makes an equal column, for files; see layers/feature_columns/column_config.h.
  virtual Config get_config() const = 0;

 protected:
  explicit FeatureColumn(std::string name) : name_(std::move(name)) {}

 private:
  const std::string name_;
};
using Column = std::shared_ptr<const FeatureColumn>;

struct NumericOptions {
  Shape shape = {1};  // of one example
  std::function<Tensor(const Tensor&)> normalizer_fn = {};
};

class NumericColumn final : public FeatureColumn {
 public:
  NumericColumn(const std::string& key, NumericOptions options)
      : FeatureColumn(key), options_(std::move(options)) {}
  const char* class_name() const override { return "NumericColumn"; }
  Config get_config() const override;  // NotImplementedError with a normalizer_fn
  const std::string& key() const { return name(); }
  // [batch, size of shape], float32. Symbolic where the feature is. ValueError for a feature of
  // another shape; TypeError for one that is no dense tensor of numbers.
  Tensor dense_tensor(const TensorLike& feature) const;

 private:
  const NumericOptions options_;
};

class CategoricalColumn final : public FeatureColumn {
 public:
  enum class Kind { kIdentity, kVocabularyList, kVocabularyFile, kHashBucket };
  struct Parts;

  explicit CategoricalColumn(Parts parts);
  const char* class_name() const override;
  Config get_config() const override;
  Kind kind() const;
  const std::string& key() const;         // of the feature with the words or numbers
  const std::string& weight_key() const;  // of the feature with the weights; empty: none
  int64_t num_buckets() const;
  bool is_sequence() const;

  // The ids of a feature, int64: sparse and ragged ones keep their positions, dense ones of rank 1
  // and 2 become sparse [batch, n] without what is missing: "" and -1. A word that the column does
  // not know gets its default_value, or -1, which lookups of the estimator leave out.
  // ValueError for an identity column's number outside its buckets and without default_value;
  // TypeError for words of another dtype than the column's.
  TensorLike transform_feature(const TensorLike& feature) const;

  // This column with weights, and for sequences.
  std::shared_ptr<const CategoricalColumn> weighted_by(const std::string& weight_key) const;
  std::shared_ptr<const CategoricalColumn> as_sequence() const;

 private:
  const std::shared_ptr<const Parts> parts_;
};
using Categorical = std::shared_ptr<const CategoricalColumn>;

// An ordinary embedding column: its table is a variable of the model, trained by the model's
// optimizer, on the host.
class EmbeddingColumn final : public FeatureColumn {
 public:
  EmbeddingColumn(Categorical categorical, int64_t dimension, std::string combiner,
                  std::optional<Initializer> initializer);
  const char* class_name() const override { return "EmbeddingColumn"; }
  Config get_config() const override;
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

// ValueError unless the shape is fully defined and not empty.
std::shared_ptr<const NumericColumn> numeric_column(const std::string& key,
                                                    NumericOptions options = {});

// ValueError unless num_buckets is positive and default_value, if there is one, a bucket.
Categorical categorical_column_with_identity(const std::string& key, int64_t num_buckets,
                                             std::optional<int64_t> default_value = {});

struct VocabularyOptions {
  int64_t default_value = -1;   // of unknown words; -1: they are left out
  int64_t num_oov_buckets = 0;  // ids after the vocabulary, which unknown words share by hash
};
// Word i of the list has id i. ValueError for an empty list, a word that stands there twice, a
// negative num_oov_buckets, and one together with default_value.
Categorical categorical_column_with_vocabulary_list(const std::string& key,
                                                    const std::vector<std::string>& words,
                                                    const VocabularyOptions& options = {});
Categorical categorical_column_with_vocabulary_list(const std::string& key,
                                                    const std::vector<int64_t>& numbers,
                                                    const VocabularyOptions& options = {});
// Word i of the list is line i of the file, of which the first vocabulary_size are taken if that is
// set. IoError if the file cannot be read; ValueError if it is shorter.
Categorical categorical_column_with_vocabulary_file(const std::string& key,
                                                    const std::string& vocabulary_file,
                                                    std::optional<int64_t> vocabulary_size = {},
                                                    const VocabularyOptions& options = {});

// Id = FarmHash64 of the word (integers: of their decimal digits) modulo hash_bucket_size, which is
// the id that TensorFlow gives it.
Categorical categorical_column_with_hash_bucket(const std::string& key, int64_t hash_bucket_size);

// The same ids, each with the weight that stands at its place in feature `weight_feature_key`.
// TypeError for a column that is not categorical, ValueError for one that has weights already.
Categorical weighted_categorical_column(const Column& categorical_column,
                                        const std::string& weight_feature_key);

// The same kinds for sequences: an id at position t of an example is step t.
Categorical sequence_categorical_column_with_identity(const std::string& key, int64_t num_buckets,
                                                      std::optional<int64_t> default_value = {});
Categorical sequence_categorical_column_with_vocabulary_list(const std::string& key,
                                                             const std::vector<std::string>& words,
                                                             const VocabularyOptions& options = {});
Categorical sequence_categorical_column_with_vocabulary_file(
    const std::string& key, const std::string& vocabulary_file,
    std::optional<int64_t> vocabulary_size = {}, const VocabularyOptions& options = {});

struct EmbeddingColumnOptions {
  std::string combiner = "mean";  // "mean", "sum" or "sqrtn"
  // Unset: truncated normal, mean 0, stddev 1 / sqrt(dimension).
  std::optional<Initializer> initializer = {};
};
// Named "<categorical column's name>_embedding". TypeError for a column that is not categorical;
// ValueError unless dimension is positive and the combiner is known.
std::shared_ptr<const EmbeddingColumn> embedding_column(const Column& categorical_column,
                                                        int64_t dimension,
                                                        EmbeddingColumnOptions options = {});

// `column` as a categorical one. TypeError, naming `caller`, for another or none.
Categorical require_categorical(const Column& column, const char* caller);

}  // namespace keel::feature_column
