// How a TPUEmbedding layer is written to and read from files.
#include <map>

#include "layers/embedding/tpu_embedding.h"

namespace keel {
namespace {

// A table, by its position in the list of tables.
struct TableFields {
  int64_t vocabulary_size = 0;
  int64_t dim = 0;
  std::optional<Initializer> initializer = {};
  TableOptimizer optimizer = {};
  std::string combiner = "mean";
  std::string name = {};

  static void fields(auto& self, auto&& field) {
    field("name", self.name);
    field("vocabulary_size", self.vocabulary_size);
    field("dim", self.dim);
    field("combiner", self.combiner);
    field("initializer", self.initializer);
    field("optimizer", self.optimizer);
  }
};

struct FeatureFields {
  int64_t table = 0;
  int64_t max_sequence_length = 0;
  std::optional<Shape> output_shape = {};
  bool validate_weights_and_indices = true;
  std::string name = {};

  static void fields(auto& self, auto&& field) {
    field("table", self.table);
    field("max_sequence_length", self.max_sequence_length);
    field("output_shape", self.output_shape);
    field("validate_weights_and_indices", self.validate_weights_and_indices);
    field("name", self.name);
  }
};

// A structure as {"feature": ...}, {"list": [...]}, {"tuple": [...]} or {"dict": {...}}: JSON
// alone knows no tuples and could not tell a leaf from a dict.
Config encode_structure(const Nest<FeatureConfig>& nest, const TableSet& tables) {
  if (nest.is_leaf()) {
    const FeatureConfig& f = nest.leaf();
    return Config::dict(
        {{"feature",
          to_config(FeatureFields{.table = tables.find(f.table),
                                  .max_sequence_length = f.max_sequence_length,
                                  .output_shape = f.output_shape,
                                  .validate_weights_and_indices = f.validate_weights_and_indices,
                                  .name = f.name})}});
  }
  if (nest.is_dict()) {
    Config children = Config::dict();
    for (const auto& [key, child] : nest.entries()) {
      children.set(key, encode_structure(child, tables));
    }
    return Config::dict({{"dict", std::move(children)}});
  }
  Config::List children;
  for (const auto& child : nest.items()) children.push_back(encode_structure(child, tables));
  return Config::dict({{nest.kind() == NestKind::kList ? "list" : "tuple", std::move(children)}});
}

constexpr int kMostLevels = 64;

Nest<FeatureConfig> decode_structure(const Config& config, const std::vector<Table>& tables,
                                     int level) {
  if (level > kMostLevels) throw ValueError("TPUEmbedding: feature_config is nested too deeply");
  if (const Config* feature = config.find("feature")) {
    const auto f = from_config<FeatureFields>(*feature, "TPUEmbedding feature_config");
    if (f.table < 0 || f.table >= static_cast<int64_t>(tables.size())) {
      throw ValueError("TPUEmbedding: feature_config names table ", f.table, " of ", tables.size());
    }
    return FeatureConfig{.table = tables[f.table],
                         .max_sequence_length = f.max_sequence_length,
                         .output_shape = f.output_shape,
                         .validate_weights_and_indices = f.validate_weights_and_indices,
                         .name = f.name};
  }
  if (const Config* dict = config.find("dict")) {
    Nest<FeatureConfig>::Dict out;
    for (const auto& [key, child] : dict->entries()) {
      out.emplace(key, decode_structure(child, tables, level + 1));
    }
    return Nest<FeatureConfig>(std::move(out));
  }
  const Config* list = config.find("list");
  Nest<FeatureConfig>::Items out;
  for (const Config& child : (list != nullptr ? *list : config["tuple"]).items()) {
    out.push_back(decode_structure(child, tables, level + 1));
  }
  return list != nullptr ? Nest<FeatureConfig>::list(std::move(out))
                         : Nest<FeatureConfig>::tuple(std::move(out));
}

}  // namespace

Config TPUEmbeddingLayer::get_config() const {
  Config::List tables;
  for (const TableSet::Entry& entry : tables_.tables) {
    const TableConfig& t = *entry.own;
    tables.push_back(to_config(TableFields{.vocabulary_size = t.vocabulary_size,
                                           .dim = t.dim,
                                           .initializer = t.initializer,
                                           .optimizer = t.optimizer,
                                           .combiner = t.combiner,
                                           .name = t.name}));
  }
  return Config::dict({{"name", name()},
                       {"trainable", trainable()},
                       {"dtype", encode(dtype())},
                       {"tables", Config(std::move(tables))},
                       {"feature_config", encode_structure(options_.feature_config, tables_)}});
}

std::shared_ptr<TPUEmbeddingLayer> TPUEmbeddingLayer::from_config(const Config& config) {
  config_internal::reject_unknown_keys(
      config, {"name", "trainable", "dtype", "tables", "feature_config"}, kClassName);
  std::vector<Table> tables;
  // Tables that shared an optimizer share one again, so that one step counter drives its schedule.
  std::map<std::string, TableOptimizer> optimizers;
  for (const Config& item : config["tables"].items()) {
    auto t = keel::from_config<TableFields>(item, "TPUEmbedding table");
    t.optimizer = optimizers.emplace(to_json(encode(t.optimizer)), t.optimizer).first->second;
    tables.push_back(make_table({.vocabulary_size = t.vocabulary_size,
                                 .dim = t.dim,
                                 .initializer = t.initializer,
                                 .optimizer = t.optimizer,
                                 .combiner = t.combiner,
                                 .name = t.name}));
  }
  TPUEmbeddingOptions options{
      .feature_config = decode_structure(config["feature_config"], tables, 0),
      .name = config["name"].string()};
  if (const Config* trainable = config.find("trainable")) decode(*trainable, options.trainable);
  if (const Config* dtype = config.find("dtype")) decode(*dtype, options.dtype);
  return std::make_shared<TPUEmbeddingLayer>(std::move(options));
}

}  // namespace keel
