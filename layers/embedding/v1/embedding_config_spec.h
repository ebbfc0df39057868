// EmbeddingConfigSpec: describes the embeddings of an estimator's model and how their tables are
// trained (tf.estimator.tpu.experimental.EmbeddingConfigSpec).
//
// optimization_parameters updates the embedding tables; the model's optimizer does not.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/embedding/v1/tpu_embedding_v1_config.h>

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
  tpu::v1::TableConfigs table_to_config_dict = {};
  // Selects how rows are sharded over hosts: "div" gives each host a contiguous block, "mod" puts
  // row r on host r modulo the number of hosts. "mod" requires that everything runs on the
  // accelerator.
  std::string partition_strategy = "div";
  // The directory for lookup statistics; see layers/embedding/v1/lookup_statistics.h. Empty:
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

  const EmbeddingConfigSpecOptions* operator->() const { return &options_; }
  const EmbeddingConfigSpecOptions& operator*() const { return options_; }
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
