// The arguments of a DistributedEmbedding: tables and features (keras_rs.layers.TableConfig,
// FeatureConfig), the stacking of tables, and the policy of id limits.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/distribute/dynamic/dynamic_vocabulary.h>
#include <keel/framework/initializers.h>
#include <keel/framework/nest.h>
#include <keel/optimizers/embedding/embedding_optimizer.h>

namespace keel::keras_rs {

// Describes one table. The layer validates it, not the object.
struct TableConfig {
  std::string name = {};        // required, without '/'; unique among the layer's tables
  int64_t vocabulary_size = 0;  // required: number of rows, > 0; 0 if `dynamic` is set
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
  int64_t max_unique_ids_per_partition = 256;  // counts repeated ids once
  // Set: the table maps any 64-bit integers or strings to rows and needs no vocabulary. It is never
  // stacked. Its features take ids of its key type.
  std::optional<DynamicVocabulary> dynamic = {};

  // Calls field(name, member) for each member.
  static constexpr void fields(auto& self, auto&& field) {
    field("name", self.name);
    field("vocabulary_size", self.vocabulary_size);
    field("embedding_dim", self.embedding_dim);
    field("initializer", self.initializer);
    field("optimizer", self.optimizer);
    field("combiner", self.combiner);
    field("placement", self.placement);
    field("max_ids_per_partition", self.max_ids_per_partition);
    field("max_unique_ids_per_partition", self.max_unique_ids_per_partition);
    field("dynamic", self.dynamic);
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
  std::string name = {};  // name of the feature, for files
  Table table = nullptr;  // required: the table that the feature looks up
  // Required: [batch], one id for each sample; or [batch, n], exactly n dense ids or at most n
  // sparse or ragged ids. Longer sparse and ragged rows are truncated to n ids.
  Shape input_shape = {};
  Shape output_shape = {};  // required: [batch, embedding_dim]
};

}  // namespace keel::keras_rs

namespace keel {

// Selects the tables to stack: "auto", none (std::nullopt), the tables of one list of names, or
// those of each of several lists.
class TableStacking {
 public:
  // Stacks all tables that fit together. Throws ValueError unless `text` is "auto".
  TableStacking(const char* text);  // NOLINT: implicit
  // Stacks no tables.
  TableStacking(std::nullopt_t) {}  // NOLINT: implicit
  // Makes one stack of the tables with these names.
  TableStacking(std::vector<std::string> names)  // NOLINT: implicit
      : lists_({std::move(names)}), one_list_(true) {}
  // Makes one stack of each list.
  TableStacking(std::vector<std::vector<std::string>> lists)  // NOLINT: implicit
      : lists_(std::move(lists)) {}

  // Returns true for "auto".
  bool is_auto() const { return auto_; }
  // Returns the lists of table names; empty for "auto" and for none.
  const std::vector<std::vector<std::string>>& lists() const { return lists_; }

  // Encode and decode "auto", null or the lists.
  friend Config encode(const TableStacking& stacking);
  friend void decode(const Config& config, TableStacking& stacking);  // See encode().

 private:
  bool auto_ = false;
  std::vector<std::vector<std::string>> lists_ = {};
  bool one_list_ = false;  // encode() writes the list as given
};

// The policy for ids beyond TableConfig::max_ids_per_partition and max_unique_ids_per_partition,
// the numbers of ids that one replica's batch sends to one partition, which is a sparse core.
// Hardware has buffers of these sizes. This engine does not need them, so limits only apply on
// request.
enum class IdLimitPolicy {
  kUnlimited,  // ignores the limits and counts nothing
  kError,      // throws ValueError before anything is looked up
  kDrop,       // drops the ids and counts them
};

// Limits on the ids of one table that one replica's batch sends to one partition.
struct IdLimits {
  int64_t max_ids_per_partition = 256;         // of all ids
  int64_t max_unique_ids_per_partition = 256;  // of distinct ids
  // Compares both.
  friend bool operator==(const IdLimits&, const IdLimits&) = default;
};

// Statistics of the lookups of one table.
struct IdStatistics {
  // The largest demand of one batch, including dropped ids. Limits of this size would have dropped
  // nothing.
  int64_t max_ids_per_partition = 0;
  int64_t max_unique_ids_per_partition = 0;  // the same for distinct ids
  int64_t dropped_ids = 0;  // number of ids dropped so far, under IdLimitPolicy::kDrop
};

}  // namespace keel

extern template class keel::Nest<keel::keras_rs::FeatureConfig>;
extern template std::vector<keel::Nest<keel::keras_rs::FeatureConfig>>::~vector();
extern template std::vector<keel::Nest<keel::keras_rs::FeatureConfig>>::vector(
    const std::vector<keel::Nest<keel::keras_rs::FeatureConfig>>& other);
