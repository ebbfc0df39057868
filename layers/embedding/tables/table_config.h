// TableConfig and FeatureConfig: which embedding tables there are, and which features look ids up
// in them (tf.tpu.experimental.embedding).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/framework/initializers.h>
#include <keel/framework/kernels/embedding/gather.h>
#include <keel/framework/nest.h>
#include <keel/optimizers/embedding/embedding_optimizer.h>

namespace keel {

// Simulated quantization of the engine's lookups: each element x of a looked-up row becomes
//   floor((clip(x, lower, upper) - lower) / q + 0.5) q + lower,  q = (upper - lower) / (buckets -
//   1)
// before rows are combined. Stored values stay exact, gradients pass straight through, and lookups
// on the host do not quantize.
struct QuantizationConfig {
  // ValueError for fewer than 2 buckets, or a lower bound that is not below the upper.
  QuantizationConfig(int64_t num_buckets, double lower, double upper);
  int64_t num_buckets;
  double lower, upper;
};

// What becomes of an odd id, one below 0 or beyond its table, on every path: engine, host, V0.
struct IdPolicy {
  enum class Kind {
    kDefault,     // an error; but sparse lookups on the host that validate drop negative ids
    kError,       // an error, always
    kIgnore,      // it is left out as if it had not been there, and counted
    kDefaultRow,  // it is looked up as `default_row`, and counted
  };
  Kind kind = Kind::kDefault;
  int64_t default_row = 0;

  static IdPolicy error() { return {.kind = Kind::kError}; }
  static IdPolicy ignore() { return {.kind = Kind::kIgnore}; }
  static IdPolicy use_row(int64_t row) { return {.kind = Kind::kDefaultRow, .default_row = row}; }
  friend bool operator==(const IdPolicy&, const IdPolicy&) = default;
};

// One table of vocabulary_size rows and dim columns.
struct TableConfig {
  int64_t vocabulary_size = 0;  // > 0
  int64_t dim = 0;              // > 0
  // Unset: truncated normal, mean 0, stddev 1 / sqrt(dim).
  std::optional<Initializer> initializer = {};
  EmbeddingOptimizer optimizer = {};  // unset: the layer's
  std::string combiner = "mean";      // "mean", "sum" or "sqrtn"
  std::string name = {};              // unset: "table_<i>", i in order of first use
  std::optional<QuantizationConfig> quantization_config = {};
  // What an engine keeps the weights as: "float32", or "bfloat16" or "float16" for half the memory
  // and traffic. Sums, rules and slots are float32; a step rounds what it leaves stochastically,
  // anything else that is written to the nearest value. Bounds of the optimizer hold up to that
  // rounding. Tables that are variables are float32 whatever stands here, and so is what files and
  // exports hold: a program runs under every strategy, and reads what another has written.
  std::string storage_dtype = "float32";
};

// A table *is* a TableConfig object: features that hold the same Table share its rows, and two
// objects with equal fields are two tables.
using Table = std::shared_ptr<TableConfig>;
// ValueError unless vocabulary_size and dim are positive and combiner and storage_dtype are known.
Table make_table(TableConfig config);

// One feature.
struct FeatureConfig {
  Table table = nullptr;
  // > 0: ids of a row are not pooled; the result is [batch, max_sequence_length, dim], longer rows
  // cut, shorter ones followed by zeros.
  int64_t max_sequence_length = 0;
  // Shape of the result without dim; unset: from the input.
  std::optional<Shape> output_shape = {};
  // Lookups of sparse ids on the host leave out negative ids, and weights that are not positive
  // unless the combiner is sum.
  bool validate_weights_and_indices = true;
  std::string name = {};
  IdPolicy id_policy = {};
};

namespace tpu {
// Row i of a table starts as offset + i (tf.tpu.experimental.embedding.RowIdInitializer), on
// whichever shard it is.
inline Initializer RowIdInitializer(int64_t offset = 0) { return initializers::row_id(offset); }
}  // namespace tpu

// As files keep them: "default", "error", "ignore" or the default row; {"num_buckets", "lower",
// "upper"}.
Config encode(const IdPolicy& policy);
void decode(const Config& config, IdPolicy& policy);
Config encode(const QuantizationConfig& quantization);
void decode(const Config& config, std::optional<QuantizationConfig>& quantization);

kernels::Combiner combiner_from_name(const std::string& name);    // ValueError if unknown
kernels::StorageType storage_from_name(const std::string& name);  // likewise
Initializer table_initializer(const TableConfig& table);

// The tables of a feature_config, with the names and optimizers in force.
struct TableSet {
  struct Entry {
    Table original;  // what the user's FeatureConfigs hold
    Table own;       // the table in force: a copy, or the original itself
  };
  std::vector<Entry> tables;  // in order of first use
  // Position of a user's table or of a copy; -1 if it is not among them.
  int find(const Table& table) const;
  // The same features on the layer's copies. ValueError, with the feature's path and `caller`, for
  // a table that is not among them.
  Nest<FeatureConfig> on_own_tables(const Nest<FeatureConfig>& features,
                                    const std::string& caller) const;
};

// Tables of `features` in order of first use, with names and optimizers settled in copies, so that
// the user's objects are never written to.
// ValueError for a FeatureConfig without table, with a negative max_sequence_length or a default
// row outside its table, and for two tables of one name.
TableSet collect_tables(const Nest<FeatureConfig>& features, const EmbeddingOptimizer& optimizer);
// The same, with names and optimizers written into the user's objects, once all checks are passed.
TableSet adopt_tables(const Nest<FeatureConfig>& features, const EmbeddingOptimizer& optimizer);

}  // namespace keel
