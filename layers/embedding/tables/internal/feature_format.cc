#include <keel/layers/embedding/tables/internal/feature_format.h>

#include <map>

namespace keel {
namespace {

// The serialized fields of a TableConfig.
struct TableFields {
  int64_t vocabulary_size = 0;
  int64_t dim = 0;
  std::optional<Initializer> initializer = {};
  EmbeddingOptimizer optimizer = {};
  std::string combiner = "mean";
  std::string name = {};
  std::optional<QuantizationConfig> quantization_config = {};
  std::string storage_dtype = "float32";
  std::optional<DynamicVocabulary> dynamic = {};
  double l2 = 0, max_norm = 0;
  bool trainable = true;

  static constexpr void fields(auto& self, auto&& field) {
    field("name", self.name);
    field("vocabulary_size", self.vocabulary_size);
    field("dim", self.dim);
    field("combiner", self.combiner);
    field("initializer", self.initializer);
    field("optimizer", self.optimizer);
    field("quantization_config", self.quantization_config);
    field("storage_dtype", self.storage_dtype);
    field("dynamic", self.dynamic);
    field("l2", self.l2);
    field("max_norm", self.max_norm);
    field("trainable", self.trainable);
  }
};

// The serialized fields of a FeatureConfig. `table` is a position in the list of tables.
struct FeatureFields {
  int64_t table = 0;
  int64_t max_sequence_length = 0;
  std::optional<Shape> output_shape = {};
  bool validate_weights_and_indices = true;
  std::string name = {};
  IdPolicy id_policy = {};

  static constexpr void fields(auto& self, auto&& field) {
    field("table", self.table);
    field("max_sequence_length", self.max_sequence_length);
    field("output_shape", self.output_shape);
    field("validate_weights_and_indices", self.validate_weights_and_indices);
    field("name", self.name);
    field("id_policy", self.id_policy);
  }
};

constexpr int kMaxDepth = 64;  // bounds the recursion on structures in files

Nest<FeatureConfig> decode_structure(const Config& config, const std::vector<Table>& tables,
                                     int level) {
  if (level > kMaxDepth) throw ValueError("TPUEmbedding: feature_config is nested too deeply");
  if (const Config* feature = config.find("feature")) {
    const auto f = from_config<FeatureFields>(*feature, "TPUEmbedding feature_config");
    if (f.table < 0 || f.table >= static_cast<int64_t>(tables.size())) {
      throw ValueError("TPUEmbedding: feature_config refers to table ", f.table, ", but there are ",
                       tables.size(), " tables");
    }
    return FeatureConfig{.table = tables[f.table],
                         .max_sequence_length = f.max_sequence_length,
                         .output_shape = f.output_shape,
                         .validate_weights_and_indices = f.validate_weights_and_indices,
                         .name = f.name,
                         .id_policy = f.id_policy};
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

Config encode_tables(const TableSet& tables) {
  Config::List out;
  for (const TableSet::Entry& entry : tables.tables) {
    const TableConfig& t = *entry.own;
    out.push_back(to_config(TableFields{.vocabulary_size = t.vocabulary_size,
                                        .dim = t.dim,
                                        .initializer = t.initializer,
                                        .optimizer = t.optimizer,
                                        .combiner = t.combiner,
                                        .name = t.name,
                                        .quantization_config = t.quantization_config,
                                        .storage_dtype = t.storage_dtype,
                                        .dynamic = t.dynamic,
                                        .l2 = t.l2,
                                        .max_norm = t.max_norm,
                                        .trainable = t.trainable}));
  }
  return out;
}

std::vector<Table> decode_tables(const Config& config) {
  std::vector<Table> out;
  std::map<std::string, EmbeddingOptimizer> optimizers;
  for (const Config& item : config.items()) {
    auto t = from_config<TableFields>(item, "TPUEmbedding table");
    // Equal optimizers become one object: tables that share an optimizer must share its step
    // counter.
    t.optimizer = optimizers.emplace(to_json(encode(t.optimizer)), t.optimizer).first->second;
    out.push_back(make_table({.vocabulary_size = t.vocabulary_size,
                              .dim = t.dim,
                              .initializer = t.initializer,
                              .optimizer = t.optimizer,
                              .combiner = t.combiner,
                              .name = t.name,
                              .quantization_config = t.quantization_config,
                              .storage_dtype = t.storage_dtype,
                              .dynamic = t.dynamic,
                              .l2 = t.l2,
                              .max_norm = t.max_norm,
                              .trainable = t.trainable}));
  }
  return out;
}

Config encode_features(const Nest<FeatureConfig>& features, const TableSet& tables) {
  if (features.is_leaf()) {
    const FeatureConfig& f = features.leaf();
    return Config::dict(
        {{"feature",
          to_config(FeatureFields{.table = tables.find(f.table),
                                  .max_sequence_length = f.max_sequence_length,
                                  .output_shape = f.output_shape,
                                  .validate_weights_and_indices = f.validate_weights_and_indices,
                                  .name = f.name,
                                  .id_policy = f.id_policy})}});
  }
  if (features.is_dict()) {
    Config children = Config::dict();
    for (const auto& [key, child] : features.entries()) {
      children.set(key, encode_features(child, tables));
    }
    return Config::dict({{"dict", std::move(children)}});
  }
  Config::List children;
  for (const auto& child : features.items()) children.push_back(encode_features(child, tables));
  return Config::dict(
      {{features.kind() == NestKind::kList ? "list" : "tuple", std::move(children)}});
}

Nest<FeatureConfig> decode_features(const Config& config, const std::vector<Table>& tables) {
  return decode_structure(config, tables, 0);
}

}  // namespace keel
