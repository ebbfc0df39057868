// Tables and features of the estimator's embedding engine (tf.compat.v1.tpu: TableConfig and
// FeatureConfig by name), and their derivation from feature columns. EmbeddingConfigSpec: describes
// the embeddings of an estimator's model and how their tables are trained
// (tf.estimator.tpu.experimental.EmbeddingConfigSpec).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <keel/framework/initializers.h>
#include <keel/layers/feature_columns/tpu_embedding_column.h>
#include <keel/optimizers/embedding/embedding_optimizer.h>

namespace keel::tpu::v1 {

// Options of a TableConfig.
struct TableOptions {
  int64_t vocabulary_size = 0;  // > 0
  int64_t dimension = 0;        // > 0
  // Unset: truncated normal, mean 0, stddev 1 / sqrt(dimension).
  std::optional<Initializer> initializer = {};
  // "mean", "sum" or "sqrtn". Unset: dense ids are looked up one by one.
  std::optional<std::string> combiner = "mean";
  bool hot_id_replication = false;  // a placement hint; does not change results
  // The learning rate of the table: learning_rate if it is set and not 0, else learning_rate_fn,
  // else the rate of the optimization parameters.
  std::optional<double> learning_rate = {};
  LearningRateFn learning_rate_fn = {};             // see learning_rate
  EmbeddingOptimizer optimization_parameters = {};  // unset: the engine's
};

// The validated, immutable config of a table.
class TableConfig {
 public:
  // Throws ValueError unless vocabulary_size and dimension are positive and the combiner is known;
  // if both learning_rate and learning_rate_fn are set; and for optimization parameters that are
  // not of a class in optimizers/embedding/tpu_parameters.h.
  TableConfig(TableOptions options);                            // NOLINT: implicit
  const TableOptions* operator->() const { return &options_; }  // Give access to the options.
  const TableOptions& operator*() const { return options_; }    // See operator->.

 private:
  TableOptions options_;
};

// Options of a FeatureConfig.
struct FeatureOptions {
  std::string table_id = {};        // the key of the table in TableConfigs
  int64_t max_sequence_length = 0;  // 0: rows are pooled
  std::string weight_key = {};      // key of the feature with the weights; empty: ones
};

// The validated, immutable config of a feature.
class FeatureConfig {
 public:
  // Throws ValueError for a negative max_sequence_length.
  FeatureConfig(FeatureOptions options);                          // NOLINT: implicit
  const FeatureOptions* operator->() const { return &options_; }  // Give access to the options.
  const FeatureOptions& operator*() const { return options_; }    // See operator->.

 private:
  FeatureOptions options_;
};

using TableConfigs = std::map<std::string, TableConfig>;      // by table_id
using FeatureConfigs = std::map<std::string, FeatureConfig>;  // by feature key
// The configs of an engine.
struct Configs {
  TableConfigs table_to_config_dict = {};      // the tables, by table_id
  FeatureConfigs feature_to_config_dict = {};  // the features, by key
};

// Returns the configs of the tables and features of TPU embedding columns. Numeric columns and
// those looked up by a tensor core are ignored. If columns share a table, the last one supplies its
// config.
// Throws TypeError for a column of another kind, including ordinary embedding columns. Throws
// ValueError for a feature key that two columns use.
Configs get_configs_from_feature_columns(const std::vector<Column>& columns);

// Returns true for the classes of optimizers/embedding/tpu_parameters.h.
bool is_v1_parameters(const EmbeddingOptimizer& optimizer);

// Returns the checkpoint names of a table's slots, in the order of the rule's slots. They are the
// names of a run on the host, "<variable>/Adagrad" or "<variable>/Adam/m".
std::vector<std::string> slot_names(const EmbeddingOptimizer& optimizer,
                                    const std::string& variable);

}  // namespace keel::tpu::v1

namespace keel::estimator {

using feature_column::Column;

// Options of an EmbeddingConfigSpec. Set either feature_columns or both feature_to_config_dict and
// table_to_config_dict.
struct EmbeddingConfigSpecOptions {
  // All columns of the model: those of tpu::embedding_column and tpu::shared_embedding_columns,
  // numeric columns, and ordinary embedding columns for runs without an accelerator.
  std::vector<Column> feature_columns = {};
  // The update rule of all tables: one of tpu::AdagradParameters, AdamParameters,
  // StochasticGradientDescentParameters, FtrlParameters, ProximalAdagradParameters,
  // MomentumParameters, RMSPropParameters.
  EmbeddingOptimizer optimization_parameters = {};
  // Stored without effect.
  std::optional<double> clipping_limit = {};
  // Overlaps lookups with dense layers. Faster, but lookups see the updates of a step one step
  // late.
  bool pipeline_execution_with_tensor_core = false;
  // Returns the factor by which the gradients of all activations are multiplied, given the global
  // step.
  std::function<double(int64_t global_step)> experimental_gradient_multiplier_fn = {};
  // The features and tables, as an alternative to feature_columns.
  tpu::v1::FeatureConfigs feature_to_config_dict = {};
  tpu::v1::TableConfigs table_to_config_dict = {};  // by the table_id of the features
  // Selects how rows are sharded over hosts: "div" gives each host a contiguous block, "mod" puts
  // row r on host r modulo the number of hosts. "mod" requires that everything runs on the
  // accelerator.
  std::string partition_strategy = "div";
  // The directory for lookup statistics; which the program profile_embedding prints. Empty:
  // statistics are not kept.
  std::string profile_data_directory = {};
};

// A validated, immutable spec.
class EmbeddingConfigSpec {
 public:
  // Checks in this order and throws:
  // ValueError  unless exactly one of feature_columns and the pair of dicts is set
  // ValueError  for an unknown partition_strategy
  // TypeError   for a column that is neither numeric nor an embedding column
  // ValueError  with columns: for optimization_parameters of another class
  // ValueError  for a feature whose table is not in table_to_config_dict
  explicit EmbeddingConfigSpec(EmbeddingConfigSpecOptions options);

  // Give access to the options.
  const EmbeddingConfigSpecOptions* operator->() const { return &options_; }
  const EmbeddingConfigSpecOptions& operator*() const { return options_; }  // See operator->.
  // Returns the columns that a tensor core looks up. No engine holds their tables.
  const std::vector<tpu::TPUColumn>& tensor_core_feature_columns() const { return tensor_core_; }

  // Returns the configs of the columns, or the dicts. Throws TypeError if a column is an ordinary
  // embedding column, and ValueError if two columns use the same feature.
  tpu::v1::Configs configs() const;

 private:
  const EmbeddingConfigSpecOptions options_;
  std::vector<tpu::TPUColumn> tensor_core_;
};

}  // namespace keel::estimator
