// Tables and features of the estimator's embedding engine (tf.compat.v1.tpu: TableConfig and
// FeatureConfig by name), and how columns become them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <keel/framework/initializers.h>
#include <keel/layers/feature_columns/tpu_embedding_column.h>
#include <keel/optimizers/embedding/embedding_optimizer.h>

namespace keel::tpu::v1 {

struct TableOptions {
  int64_t vocabulary_size = 0;  // > 0
  int64_t dimension = 0;        // > 0
  // Unset: truncated normal, mean 0, stddev 1 / sqrt(dimension).
  std::optional<Initializer> initializer = {};
  // "mean", "sum", "sqrtn"; or none: dense ids are looked up one by one.
  std::optional<std::string> combiner = "mean";
  bool hot_id_replication = false;  // a hint of placement; changes no value
  // What steps the table's rows by: learning_rate if it is there and not 0, else learning_rate_fn,
  // else the rate of the optimization parameters.
  std::optional<double> learning_rate = {};
  LearningRateFn learning_rate_fn = {};
  EmbeddingOptimizer optimization_parameters = {};  // unset: those of the engine
};

// Checked when made, immutable after.
class TableConfig {
 public:
  // ValueError unless vocabulary_size and dimension are positive and the combiner is known; for
  // both a learning_rate and a learning_rate_fn; for optimization parameters that are none of the
  // classes of optimizers/embedding/tpu_parameters.h.
  TableConfig(TableOptions options);  // NOLINT: implicit
  const TableOptions* operator->() const { return &options_; }
  const TableOptions& operator*() const { return options_; }

 private:
  TableOptions options_;
};

struct FeatureOptions {
  std::string table_id = {};        // the table's key among the tables
  int64_t max_sequence_length = 0;  // 0: rows are pooled
  std::string weight_key = {};      // of the feature with the weights; empty: ones
};

class FeatureConfig {
 public:
  // ValueError for a negative max_sequence_length.
  FeatureConfig(FeatureOptions options);  // NOLINT: implicit
  const FeatureOptions* operator->() const { return &options_; }
  const FeatureOptions& operator*() const { return options_; }

 private:
  FeatureOptions options_;
};

using TableConfigs = std::map<std::string, TableConfig>;      // by table_id
using FeatureConfigs = std::map<std::string, FeatureConfig>;  // by feature key
struct Configs {
  TableConfigs table_to_config_dict = {};
  FeatureConfigs feature_to_config_dict = {};
};

// What TPU embedding columns ask of an engine. Numeric columns and those of a tensor core ask
// nothing; the last column on a shared table supplies its config.
// TypeError for a column of another kind, ordinary embedding columns among them; ValueError for a
// feature key that two columns have.
Configs get_configs_from_feature_columns(const std::vector<Column>& columns);

// True for the classes of optimizers/embedding/tpu_parameters.h.
bool is_v1_parameters(const EmbeddingOptimizer& optimizer);

// Names of a table's slots in a checkpoint, in the order of the rule's slots: those that a run on
// the host gives them, "<variable>/Adagrad" or "<variable>/Adam/m".
std::vector<std::string> slot_names(const EmbeddingOptimizer& optimizer,
                                    const std::string& variable);

}  // namespace keel::tpu::v1
