// The tables of a DistributedEmbedding: their values, limits, statistics and notices, and its
// config.
#include <absl/strings/str_cat.h>
#include <algorithm>

#include <keel/layers/embedding/distributed/distributed_embedding.h>
#include <keel/layers/embedding/distributed/internal/feature_configs.h>
#include <keel/layers/embedding/distributed/internal/layer_parts.h>
#include <keel/layers/embedding/distributed/internal/sparse_core.h>
#include <keel/layers/embedding/tables/internal/dynamic_entries.h>
#include <keel/layers/embedding/tables/internal/lookup_counter.h>

namespace keel {
namespace {

// Returns the ids or weights by path in the output of preprocess().
std::map<std::string, TensorLike> by_path(const Tensors& placements, const char* part) {
  std::map<std::string, TensorLike> out;
  for (const auto& [placement, group] : placements.entries()) {
    const auto found = group.entries().find(part);
    if (found == group.entries().end()) continue;
    for (const auto& [path, tensor] : found->second.entries()) out.emplace(path, tensor.leaf());
  }
  return out;
}

}  // namespace

std::vector<FeatureLookup> DistributedEmbeddingLayer::lookups(const Tensors& inputs) const {
  // A call with weights records the output of preprocess().
  constexpr const char* kPreprocessed = "preprocessed_inputs_per_placement";
  std::map<std::string, TensorLike> ids, weights;
  if (inputs.is_dict() && inputs.entries().contains(kPreprocessed)) {
    ids = by_path(inputs[kPreprocessed], "inputs");
    weights = by_path(inputs[kPreprocessed], "weights");
  } else {
    const std::vector<TensorLike> flat = flatten(inputs);
    for (size_t i = 0; i < flat.size(); ++i) ids.emplace(features_[i].path, flat[i]);
  }
  std::vector<FeatureLookup> out;
  for (const Feature& feature : features_) {
    const std::shared_ptr<const keras_rs::TableConfig> table = tables_[feature.table].config;
    const auto weight = weights.find(feature.path);
    out.push_back(
        {.path = feature.path,
         .table_name = table->name,
         .table = table.get(),
         .combiner = table->combiner,
         .dynamic = table->dynamic,
         .max_row_length = feature.max_row_length(),
         .ids = ids.at(feature.path),
         .weights = weight == weights.end() ? std::nullopt : std::optional(weight->second)});
  }
  return out;
}

Tensors DistributedEmbeddingLayer::pack_features(const std::vector<TensorLike>& values) const {
  return pack_sequence_as(options_.feature_configs, values);
}

std::vector<StateEntry> DistributedEmbeddingLayer::state_entries() const {
  std::vector<StateEntry> out;
  for (const Table& table : tables_) {
    if (table.layer == nullptr) {
      for (StateEntry& entry : sparse_core_->state_entries(table.position)) {
        out.push_back(std::move(entry));
      }
      continue;
    }
    for (StateEntry& entry : table.layer->EmbedReduceLayer::state_entries()) {
      entry.name = table.config->name + "/" + entry.name;
      out.push_back(std::move(entry));
    }
  }
  return out;
}

std::vector<std::string> DistributedEmbeddingLayer::weight_attributes() const {
  std::map<std::string, std::string> places;  // by the table's name
  int features = 0;
  for (const keras_rs::FeatureConfig& feature : flatten(options_.feature_configs)) {
    const auto table = std::ranges::find(tables_, feature.table, &Table::original);
    std::string place = "_default_device_embedding_layers/embed_reduce";
    if (features > 0) absl::StrAppend(&place, "_", features);
    places.try_emplace(table->config->name, std::move(place));
    ++features;
  }
  std::vector<std::string> out;
  for (const StateEntry& entry : state_entries()) {
    // Model files hold tables with dynamic ids by name.
    if (entry.kind != StateEntry::Kind::kWeight || entry.any_rows) continue;
    out.push_back(places.at(entry.name.substr(0, entry.name.find('/'))));
  }
  return out;
}

std::map<std::string, Tensor> DistributedEmbeddingLayer::get_embedding_tables() const {
  if (!built()) {
    throw RuntimeError("DistributedEmbedding ", name(),
                       ": the layer is not built; call it once first");
  }
  std::map<std::string, Tensor> out;
  const std::vector<StateEntry> entries = state_entries();
  for (const Table& table : tables_) {
    if (table.config->dynamic) {
      const DynamicTable rows = dynamic_table(table.config->name);
      out.emplace(table.config->name, rows.rows(rows.keys()));
      continue;
    }
    const auto it =
        std::ranges::find(entries, table.config->name + "/embeddings", &StateEntry::name);
    out.emplace(table.config->name, it->get());
  }
  return out;
}

void DistributedEmbeddingLayer::set_embedding_tables(const std::map<std::string, Tensor>& tables) {
  if (!built()) {
    throw RuntimeError("DistributedEmbedding ", name(),
                       ": the layer is not built; call it once first");
  }
  const std::vector<StateEntry> entries = state_entries();
  // Check all tables before changing any.
  std::vector<std::pair<const StateEntry*, const Tensor*>> assignments;
  for (const auto& [table, values] : tables) {
    const auto it = std::ranges::find(entries, table + "/embeddings", &StateEntry::name);
    if (it == entries.end()) {
      throw ValueError("DistributedEmbedding ", name(), ": unknown table '", table,
                       "'; pass the name of one of its tables");
    }
    if (it->any_rows) {
      throw ValueError("DistributedEmbedding ", name(), ": table '", table,
                       "' has dynamic ids and no numbered rows; use "
                       "dynamic_table(name).assign_rows(keys, values)");
    }
    if (values.spec() != it->spec) {
      throw ValueError("DistributedEmbedding ", name(), ": table '", table, "' must be ",
                       it->spec.dtype, " ", it->spec.shape, ", received ", values.dtype(), " ",
                       values.shape());
    }
    assignments.emplace_back(&*it, &values);
  }
  for (const auto& [entry, values] : assignments) entry->set(*values);
}

DynamicTable DistributedEmbeddingLayer::dynamic_table(const std::string& table) const {
  const auto it =
      std::ranges::find_if(tables_, [&](const Table& t) { return t.config->name == table; });
  if (it == tables_.end() || !it->config->dynamic) {
    throw ValueError("dynamic_table: table '", table, "' of layer ", name(),
                     it == tables_.end() ? " does not exist; pass the name of one of its tables"
                                         : " has a vocabulary; set TableConfig::dynamic");
  }
  if (!built()) {
    throw RuntimeError("DistributedEmbedding ", name(),
                       ": the layer is not built; call it once first");
  }
  return it->sparsecore ? sparse_core_->dynamic_table(it->position) : it->layer->dynamic_table();
}

std::vector<std::pair<std::string, DynamicTable>> DistributedEmbeddingLayer::dynamic_tables()
    const {
  std::vector<std::pair<std::string, DynamicTable>> out;
  for (const Table& table : tables_) {
    if (!built() || !table.config->dynamic) continue;
    out.emplace_back(table.config->name, dynamic_table(table.config->name));
  }
  return out;
}

std::vector<std::vector<std::string>> DistributedEmbeddingLayer::table_stacks() const {
  std::vector<std::vector<std::string>> out;
  if (sparse_core_ == nullptr) return out;
  for (const TableStack& stack : sparse_core_->stacks()) {
    std::vector<std::string>& names = out.emplace_back();
    for (const StackMember& member : stack.members) names.push_back(member.name);
  }
  return out;
}

std::map<std::string, IdLimits> DistributedEmbeddingLayer::id_limits() const {
  std::map<std::string, IdLimits> out;
  for (const Table& table : tables_) {
    if (table.sparsecore) out.emplace(table.config->name, sparse_core_->limits(table.position));
  }
  return out;
}

void DistributedEmbeddingLayer::set_id_limits(const std::map<std::string, IdLimits>& limits) {
  const bool apply = options_.update_stats || options_.id_limit_policy != IdLimitPolicy::kUnlimited;
  for (const auto& [table, of_table] : limits) {
    if (!apply ||
        std::min(of_table.max_ids_per_partition, of_table.max_unique_ids_per_partition) > 0) {
      continue;
    }
    throw ValueError("DistributedEmbedding ", name(), ": limits of table '", table,
                     "' must be positive");
  }
  for (const Table& table : tables_) {
    const auto it = limits.find(table.config->name);
    if (table.sparsecore && it != limits.end()) {
      sparse_core_->set_limits(table.position, it->second);
    }
  }
}

std::map<std::string, IdStatistics> DistributedEmbeddingLayer::id_statistics() const {
  std::map<std::string, IdStatistics> out;
  for (const Table& table : tables_) {
    if (table.sparsecore) out[table.config->name] = sparse_core_->statistics(table.position);
  }
  return out;
}

std::shared_ptr<const keras_rs::TableConfig> DistributedEmbeddingLayer::table_of_feature(
    const std::string& path) const {
  const auto it = std::ranges::find(features_, path, &Feature::path);
  if (it == features_.end()) {
    throw ValueError("DistributedEmbedding ", name(), ": unknown feature '", path,
                     "'; pass the path of one of its features");
  }
  return tables_[it->table].config;
}

std::map<std::string, LookupStatistics> DistributedEmbeddingLayer::lookup_statistics() const {
  if (lookup_counter_ == nullptr) {
    throw RuntimeError("DistributedEmbedding ", name(),
                       ": lookup_statistics() requires the option collect_statistics");
  }
  std::map<std::string, LookupStatistics> out;
  for (size_t t = 0; t < tables_.size(); ++t) {
    out.emplace(tables_[t].config->name, lookup_counter_->statistics(t));
  }
  return out;
}

std::vector<std::string> DistributedEmbeddingLayer::training_notices() const {
  std::vector<std::string> out;
  if (lookup_counter_ != nullptr) {
    for (const auto& [table, counts] : lookup_statistics()) {
      out.push_back(absl::StrCat("DistributedEmbedding ", name(), ": table '", table,
                                 "': ", text_of(counts)));
    }
  }
  for (const auto& [table, seen] : id_statistics()) {
    if (seen.dropped_ids == 0) continue;
    out.push_back(absl::StrCat(
        "DistributedEmbedding ", name(), ": ", seen.dropped_ids, " ids of table '", table,
        "' were dropped; to keep them, raise max_ids_per_partition to ", seen.max_ids_per_partition,
        " and max_unique_ids_per_partition to ", seen.max_unique_ids_per_partition));
  }
  for (const auto& [table, rows] : dynamic_tables()) {
    out.push_back(dynamic_notice(
        absl::StrCat("DistributedEmbedding ", name(), ": table '", table, "'"), rows.statistics()));
  }
  return out;
}

Config DistributedEmbeddingLayer::get_config() const {
  // Encodes the copies: the user may have changed the original objects.
  const Nest<keras_rs::FeatureConfig> features =
      map_structure(options_.feature_configs, [&](keras_rs::FeatureConfig config) {
        const auto it = std::ranges::find(tables_, config.table, &Table::original);
        config.table = std::const_pointer_cast<keras_rs::TableConfig>(it->config);
        return config;
      });
  const Config encoded = keras_rs::encode_feature_configs(features);
  Config out = Config::dict({{"name", name()},
                             {"trainable", trainable()},
                             {"dtype", encode(dtype_policy())},
                             {"feature_configs", encoded["feature_configs"]},
                             {"tables", encoded["tables"]},
                             {"table_stacking", encode(options_.table_stacking)}});
  if (options_.update_stats) out.set("update_stats", true);
  // keras_rs does not have the other keys, so they are only written if set.
  if (options_.collect_statistics) out.set("collect_statistics", true);
  if (options_.id_limit_policy != IdLimitPolicy::kUnlimited) {
    out.set("id_limit_policy", encode(options_.id_limit_policy));
  }
  return out;
}

std::shared_ptr<DistributedEmbeddingLayer> DistributedEmbeddingLayer::from_config(
    const Config& config) {
  config_internal::reject_unknown_keys(
      config,
      {"name", "trainable", "dtype", "feature_configs", "tables", "table_stacking", "update_stats",
       "id_limit_policy", "collect_statistics"},
      kClassName);
  Options options = {.feature_configs = keras_rs::decode_feature_configs(config["feature_configs"],
                                                                         config["tables"])};
  const auto read = [&](const char* key, auto& value) {
    const Config* const found = config.find(key);
    if (found != nullptr && !found->is_null()) decode(*found, value);
  };
  read("name", options.name);
  read("trainable", options.trainable);
  read("dtype", options.dtype);
  read("table_stacking", options.table_stacking);
  read("update_stats", options.update_stats);
  read("id_limit_policy", options.id_limit_policy);
  read("collect_statistics", options.collect_statistics);
  return std::make_shared<DistributedEmbeddingLayer>(std::move(options));
}

}  // namespace keel

template class keel::Nest<keel::keras_rs::FeatureConfig>;
template std::vector<keel::Nest<keel::keras_rs::FeatureConfig>>::~vector();
template std::vector<keel::Nest<keel::keras_rs::FeatureConfig>>::vector(
    const std::vector<keel::Nest<keel::keras_rs::FeatureConfig>>& other);
