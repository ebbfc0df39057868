// TableConfig and FeatureConfig: describe the embedding tables and the features that look up ids in
// them (tf.tpu.experimental.embedding).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/distribute/dynamic/dynamic_vocabulary.h>
#include <keel/framework/initializers.h>
#include <keel/framework/tensor_like.h>
#include <keel/optimizers/embedding/embedding_optimizer.h>

namespace keel {

// Simulated quantization of the engine's lookups. Before rows are combined, each element x of a
// looked-up row becomes
//   floor((clip(x, lower, upper) - lower) / q + 0.5) q + lower,
//   q = (upper - lower) / (buckets - 1)
// Stored values stay exact, gradients pass straight through, and lookups on the host do not
// quantize.
struct QuantizationConfig {
  // Throws ValueError for fewer than 2 buckets, or if `lower` is not below `upper`.
  QuantizationConfig(int64_t num_buckets, double lower, double upper);
  int64_t num_buckets;  // >= 2
  double lower;         // the lowest value
  double upper;         // the highest value
};

// Selects how lookups treat an invalid id, that is, one that is negative or not below the table's
// number of rows. Applies to all lookups: engine, host and V0.
struct IdPolicy {
  // The treatment of an invalid id.
  enum class Kind {
    kDefault,     // kError, but sparse host lookups that validate drop negative ids
    kError,       // throws ValueError
    kIgnore,      // drops the id and counts it
    kDefaultRow,  // looks up `default_row` instead and counts the id
  };
  Kind kind = Kind::kDefault;  // see Kind
  int64_t default_row = 0;     // of kDefaultRow

  // Creates the policy that throws ValueError.
  static IdPolicy error() { return {.kind = Kind::kError}; }
  // Creates the policy that drops invalid ids and counts them.
  static IdPolicy ignore() { return {.kind = Kind::kIgnore}; }
  // Creates the policy that replaces invalid ids by `row` and counts them.
  static IdPolicy use_row(int64_t row) { return {.kind = Kind::kDefaultRow, .default_row = row}; }
  // Compares kind and row.
  friend bool operator==(const IdPolicy&, const IdPolicy&) = default;
};

// Counts of the invalid ids that lookups dropped or replaced instead of throwing (IdPolicy).
struct IdCounts {
  int64_t dropped = 0;   // under IdPolicy::ignore()
  int64_t replaced = 0;  // with the default row
};

// The weights of the ids of one call, packed like the features. If unset, or for an empty leaf, all
// weights are 1.
using FeatureWeights = std::optional<Nest<std::optional<TensorLike>>>;

// Describes one table of dim columns, with vocabulary_size rows or for unbounded ids.
struct TableConfig {
  int64_t vocabulary_size = 0;  // > 0; 0 if `dynamic` is set
  int64_t dim = 0;              // > 0
  // Unset: truncated normal, mean 0, stddev 1 / sqrt(dim).
  std::optional<Initializer> initializer = {};
  EmbeddingOptimizer optimizer = {};  // unset: the optimizer of the layer
  // How the rows of a sample are pooled: "mean", "sum", "sqrtn", or "max" for the maximum of each
  // element. "max" takes no weights, and the gradient of an element belongs to the first of the
  // sample's ids that has the maximum. With dynamic ids, "max" excludes NotAdmitted::ignore()
  // (NotImplementedError).
  std::string combiner = "mean";
  std::string name = {};  // unset: "table_<i>", numbered in order of first use
  std::optional<QuantizationConfig> quantization_config = {};  // unset: lookups are exact
  // The type in which an engine stores the weights: "float32", or "bfloat16" or "float16" for half
  // the memory and traffic. Sums, update rules and slots are float32. An update rounds the new
  // weights stochastically; any other write rounds to nearest. Bounds of the optimizer hold up to
  // that rounding. Tables that are variables ignore this field and are float32, and so are files
  // and exports, so that one program runs under every strategy and reads the files of every other.
  std::string storage_dtype = "float32";
  // Set: the table maps any 64-bit integers or strings to rows and needs no vocabulary. Its
  // features take string ids if its key type is kString. IdPolicy then concerns negative ids and
  // empty strings, which are ids like all others by default.
  std::optional<DynamicVocabulary> dynamic = {};
  // A penalty and a limit of the rows that a training step looks up, and of no other rows, so that
  // no step reads the whole table. Under every strategy, with w a row and g its summed gradient:
  //   l2        adds 2 l2 w to g, the gradient of l2 |w|^2, after gradients are clipped. A row that
  //             occurs in the batch counts once. The loss does not contain the penalty.
  //   max_norm  scales the row down to this Euclidean norm if the update leaves it longer.
  // 0 turns them off. With dynamic ids they also concern the fallback rows that a step looks up.
  double l2 = 0, max_norm = 0;
  // False: steps look the table up but do not update it, and it has no slots and needs no
  // optimizer. A table with dynamic ids then admits, counts and evicts no ids: all lookups are
  // inference lookups, and rows come from files, checkpoints and DynamicTable::assign_rows.
  bool trainable = true;
};

// The identity of a table is its TableConfig object. Features that hold the same Table share its
// rows; two objects with equal fields are two tables.
using Table = std::shared_ptr<TableConfig>;
// Creates a table. Throws ValueError unless vocabulary_size and dim are positive, combiner and
// storage_dtype are known, and l2 and max_norm are finite and not negative. With `dynamic`,
// vocabulary_size must be 0, and the conditions of check(DynamicVocabulary) and
// check_row_initializers() apply.
Table make_table(TableConfig config);

// Describes one feature.
struct FeatureConfig {
  Table table = nullptr;  // required: the table that the feature looks up
  // If > 0, the ids of a row are not pooled: the output has shape [batch, max_sequence_length,
  // dim]. Longer rows are truncated, shorter rows are padded with zeros.
  int64_t max_sequence_length = 0;
  // Shape of the output without dim. Unset: derived from the input.
  std::optional<Shape> output_shape = {};
  // If true, host lookups of sparse ids drop negative ids, and drop weights that are not positive
  // unless the combiner is sum.
  bool validate_weights_and_indices = true;
  std::string name = {};    // in the record of the engine
  IdPolicy id_policy = {};  // the treatment of invalid ids
};

namespace tpu {
// Initializes row i of a table with offset + i, regardless of its shard
// (tf.tpu.experimental.embedding.RowIdInitializer).
inline Initializer RowIdInitializer(int64_t offset = 0) { return initializers::row_id(offset); }
}  // namespace tpu

// Encode and decode the fields of configs. An IdPolicy is "default", "error", "ignore" or the
// default row. A QuantizationConfig is {"num_buckets", "lower", "upper"} or null.
Config encode(const IdPolicy& policy);
void decode(const Config& config, IdPolicy& policy);  // see encode()
// Encodes the fields as described above.
Config encode(const QuantizationConfig& quantization);
// See encode().
void decode(const Config& config, std::optional<QuantizationConfig>& quantization);

// Returns the table's initializer, or the default one if it is unset.
Initializer table_initializer(const TableConfig& table);

// The tables of a feature_config, with their effective names and optimizers.
struct TableSet {
  // One table: the user's object and the one that the layer uses.
  struct Entry {
    Table original;  // the object in the user's FeatureConfigs
    Table own;       // the effective table: a copy, or `original` itself
  };
  std::vector<Entry> tables;  // in order of first use
  // Returns the position of a table, given by its original or its copy; -1 if the set does not
  // contain it.
  int find(const Table& table) const;
  // Returns `features` with each table replaced by the effective one. Throws ValueError, naming
  // `caller` and the feature, for a table that the set does not contain.
  Nest<FeatureConfig> on_own_tables(const Nest<FeatureConfig>& features,
                                    const std::string& caller) const;
};

// Collects the tables of `features` in order of first use. Names and optimizers are resolved in
// copies; the user's objects are not modified.
// Throws ValueError for a FeatureConfig without a table, with a negative max_sequence_length or
// with a default row that is outside its table or of a table with dynamic ids, and for two tables
// with the same name.
TableSet collect_tables(const Nest<FeatureConfig>& features, const EmbeddingOptimizer& optimizer);
// Collects tables like collect_tables, and writes names and optimizers to the user's objects after
// all checks have passed.
TableSet adopt_tables(const Nest<FeatureConfig>& features, const EmbeddingOptimizer& optimizer);

}  // namespace keel

extern template class keel::Nest<keel::FeatureConfig>;
extern template std::vector<keel::Nest<keel::FeatureConfig>>::~vector();
extern template std::vector<keel::Nest<keel::FeatureConfig>>::vector(
    const std::vector<keel::Nest<keel::FeatureConfig>>& other);
extern template std::vector<keel::FeatureConfig>::~vector();
extern template std::vector<keel::FeatureConfig>::vector(
    const std::vector<keel::FeatureConfig>& other);
extern template class keel::Nest<std::optional<keel::TensorLike>>;
extern template std::vector<keel::Nest<std::optional<keel::TensorLike>>>::~vector();
extern template std::vector<keel::Nest<std::optional<keel::TensorLike>>>::vector(
    const std::vector<keel::Nest<std::optional<keel::TensorLike>>>& other);
extern template std::vector<std::optional<keel::TensorLike>>::~vector();
extern template std::vector<std::optional<keel::TensorLike>>::vector(
    const std::vector<std::optional<keel::TensorLike>>& other);
