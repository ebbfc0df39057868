// EmbeddingConfigSpec: which embeddings an estimator's model has and how their tables are trained
// (tf.estimator.tpu.experimental.EmbeddingConfigSpec).
//
// The optimizer of the model does not touch embedding tables; optimization_parameters does.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/embedding/v1/tpu_embedding_v1_config.h>

namespace keel::estimator {

using feature_column::Column;

struct EmbeddingConfigSpecOptions {
  // All columns that the model takes: of tpu::embedding_column and tpu::shared_embedding_columns,
  // numeric ones, and ordinary embedding columns for runs without an accelerator. Either these ...
  std::vector<Column> feature_columns = {};
  // How all tables are stepped: one of tpu::AdagradParameters, AdamParameters,
  // StochasticGradientDescentParameters, FtrlParameters, ProximalAdagradParameters,
  // MomentumParameters, RMSPropParameters.
  EmbeddingOptimizer optimization_parameters = {};
  // Stored, and without effect: no part of the system reads it.
  std::optional<double> clipping_limit = {};
  // Faster: lookups and dense layers overlap, and a step's updates are seen one step late.
  bool pipeline_execution_with_tensor_core = false;
  // What gradients of all activations are multiplied by, given the global step.
  std::function<double(int64_t global_step)> experimental_gradient_multiplier_fn = {};
  // ... or both of these.
  tpu::v1::FeatureConfigs feature_to_config_dict = {};
  tpu::v1::TableConfigs table_to_config_dict = {};
  // How rows are dealt to hosts: "div", contiguous blocks, or "mod", row r to host r modulo hosts.
  // "mod" is for training and evaluation on the accelerator only.
  std::string partition_strategy = "div";
  // Where statistics of lookups are kept; see layers/embedding/v1/lookup_statistics.h. Empty:
  // nowhere.
  std::string profile_data_directory = {};
};

// Immutable.
class EmbeddingConfigSpec {
 public:
  // In this order:
  // ValueError  not exactly one of feature_columns and both dicts
  // ValueError  another partition_strategy
  // TypeError   a column that is neither numeric nor an embedding column
  // ValueError  with columns: optimization_parameters of another class
  // ValueError  a feature whose table is not in table_to_config_dict
  explicit EmbeddingConfigSpec(EmbeddingConfigSpecOptions options);

  const EmbeddingConfigSpecOptions* operator->() const { return &options_; }
  const EmbeddingConfigSpecOptions& operator*() const { return options_; }
  // Those of feature_columns that a tensor core looks up, and which no engine holds.
  const std::vector<tpu::TPUColumn>& tensor_core_feature_columns() const { return tensor_core_; }

  // Of the columns, or the dicts as given. TypeError if a column is an ordinary embedding column;
  // ValueError if two columns take one feature.
  tpu::v1::Configs configs() const;

 private:
  const EmbeddingConfigSpecOptions options_;
  std::vector<tpu::TPUColumn> tensor_core_;
};

}  // namespace keel::estimator
