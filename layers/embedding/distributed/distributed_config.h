// keras_rs::TableConfig and FeatureConfig: describe the tables of a DistributedEmbedding and the
// features that look up ids in them (keras_rs.layers.TableConfig, FeatureConfig).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <keel/framework/initializers.h>
#include <keel/framework/nest.h>
#include <keel/optimizers/embedding/embedding_optimizer.h>

namespace keel::keras_rs {

// Describes one table. The layer validates it, not the object.
struct TableConfig {
  std::string name = {};        // required, without '/'; unique among the layer's tables
  int64_t vocabulary_size = 0;  // required: number of rows, > 0
  int64_t embedding_dim = 0;    // required: number of columns, > 0
  // Unset: truncated normal, mean 0, stddev 1 / sqrt(embedding_dim).
  std::optional<Initializer> initializer = initializers::variance_scaling(1.0, "fan_out");
  // The optimizer of a table on sparse cores. The model's optimizer trains tables on the default
  // device.
  EmbeddingOptimizer optimizer = "adam";
  std::string combiner = "mean";  // "mean", "sum" or "sqrtn"
  std::string placement =
      "auto";  // "sparsecore", "default_device", or "auto": sparse cores if present
  // Limits on the ids that one replica's batch sends to one sparse core; see IdLimitPolicy.
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

// The identity of a table is its TableConfig object: features that hold the same Table share its
// rows.
using Table = std::shared_ptr<TableConfig>;
// Creates a table without checking it.
inline Table make_table(TableConfig config) {
  return std::make_shared<TableConfig>(std::move(config));
}

// Describes one feature. The first dimension of shapes is the *global* batch; dimensions may be
// kUnknown.
struct FeatureConfig {
  std::string name = {};
  Table table = nullptr;
  // Required: [batch], one id for each sample; or [batch, n], exactly n dense ids or at most n
  // sparse or ragged ids. Longer sparse and ragged rows are truncated to n ids.
  Shape input_shape = {};
  Shape output_shape = {};  // required: [batch, embedding_dim]
};

// Returns the table's initializer, or the default one if it is unset.
Initializer table_initializer(const TableConfig& table);

// Throws ValueError, naming `path`, for a feature without a table; for shapes other than those
// described above; and for a table whose name is empty or contains '/', whose dimensions are not
// positive, or whose combiner or placement is unknown.
void check_feature(const std::string& path, const FeatureConfig& feature);

// Encodes the structure of features, with tables referred to by position, and the tables, each
// once, in order of first use:
//   {"feature_configs": {"user": {"name", "table": 0, "input_shape", "output_shape"}, ...},
//    "tables": [{"name", "vocabulary_size", ...}, ...]}
Config encode_feature_configs(const Nest<FeatureConfig>& features);
// Decodes features. Features that shared a table share one again, and so do tables that shared an
// optimizer. Throws ValueError for a table position that is out of range and under the conditions
// of from_config.
Nest<FeatureConfig> decode_feature_configs(const Config& features, const Config& tables);

}  // namespace keel::keras_rs
