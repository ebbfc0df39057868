// Tables and features of the estimator's embedding engine (tf.compat.v1.tpu: TableConfig and
// FeatureConfig by name), and their derivation from feature columns.
#pragma once

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
  LearningRateFn learning_rate_fn = {};
  EmbeddingOptimizer optimization_parameters = {};  // unset: the engine's
};

// The validated, immutable config of a table.
class TableConfig {
 public:
  // Throws ValueError unless vocabulary_size and dimension are positive and the combiner is known;
  // if both learning_rate and learning_rate_fn are set; and for optimization parameters that are
  // not of a class in optimizers/embedding/tpu_parameters.h.
  TableConfig(TableOptions options);  // NOLINT: implicit
  const TableOptions* operator->() const { return &options_; }
  const TableOptions& operator*() const { return options_; }

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
  FeatureConfig(FeatureOptions options);  // NOLINT: implicit
  const FeatureOptions* operator->() const { return &options_; }
  const FeatureOptions& operator*() const { return options_; }

 private:
  FeatureOptions options_;
};

using TableConfigs = std::map<std::string, TableConfig>;      // by table_id
using FeatureConfigs = std::map<std::string, FeatureConfig>;  // by feature key
// The configs of an engine.
struct Configs {
  TableConfigs table_to_config_dict = {};
  FeatureConfigs feature_to_config_dict = {};
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
