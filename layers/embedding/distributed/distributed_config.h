// keras_rs::TableConfig and FeatureConfig: the tables of a DistributedEmbedding, and the features
// that look ids up in them (keras_rs.layers.TableConfig, FeatureConfig).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <keel/framework/initializers.h>
#include <keel/framework/nest.h>
#include <keel/optimizers/embedding/embedding_optimizer.h>

namespace keel::keras_rs {

// One table. The layer checks it, not the object.
struct TableConfig {
  std::string name = {};        // required, without '/'; unique among the layer's tables
  int64_t vocabulary_size = 0;  // required: rows, > 0
  int64_t embedding_dim = 0;    // required: columns, > 0
  // Unset: truncated normal, mean 0, stddev 1 / sqrt(embedding_dim).
  std::optional<Initializer> initializer = initializers::variance_scaling(1.0, "fan_out");
  // Of a table on sparse cores; on the default device the model's optimizer trains the table.
  EmbeddingOptimizer optimizer = "adam";
  std::string combiner = "mean";   // "mean", "sum" or "sqrtn"
  std::string placement = "auto";  // "sparsecore", "default_device", or "auto": the first there is
  // Of the ids that one replica's batch sends to one sparse core; see IdLimitPolicy.
  int64_t max_ids_per_partition = 256;
  int64_t max_unique_ids_per_partition = 256;

  static void fields(auto& self, auto&& field) {
    field("name", self.name);
    field("vocabulary_size", self.vocabulary_size);
    field("embedding_dim", self.embedding_dim);
    field("initializer", self.initializer);
    field("optimizer", self.optimizer);
    field("combiner", self.combiner);
    field("placement", self.placement);
    field("max_ids_per_partition", self.max_ids_per_partition);
    field("max_unique_ids_per_partition", self.max_unique_ids_per_partition);
  }
};

// A table *is* a TableConfig object: features that hold the same Table share its rows.
using Table = std::shared_ptr<TableConfig>;
inline Table make_table(TableConfig config) {
  return std::make_shared<TableConfig>(std::move(config));
}

// One feature. Shapes begin with the *global* batch; dimensions may be kUnknown.
struct FeatureConfig {
  std::string name = {};
  Table table = nullptr;
  // Required: [batch], one id for each sample, or [batch, n]: n ids, or at most n of sparse and
  // ragged ones, which are cut there.
  Shape input_shape = {};
  Shape output_shape = {};  // required: [batch, embedding_dim]
};

Initializer table_initializer(const TableConfig& table);

// ValueError, with `path`, for a feature without table, shapes other than said above, and a table
// with an empty name or one with '/', dimensions that are not positive, an unknown combiner or
// placement.
void check_feature(const std::string& path, const FeatureConfig& feature);

// The structure of features with tables named by their position, and the tables, each once, in
// order of first use:
//   {"feature_configs": {"user": {"name", "table": 0, "input_shape", "output_shape"}, ...},
//    "tables": [{"name", "vocabulary_size", ...}, ...]}
Config encode_feature_configs(const Nest<FeatureConfig>& features);
// Features that named one table share it again, and tables that had one optimizer share that.
// ValueError for a position beyond the tables and what from_config says.
Nest<FeatureConfig> decode_feature_configs(const Config& features, const Config& tables);

}  // namespace keel::keras_rs
