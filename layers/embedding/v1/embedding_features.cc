#include <keel/layers/embedding/v1/embedding_features.h>

#include <algorithm>

#include <keel/layers/embedding/tables/internal/host_lookup.h>
#include <keel/layers/embedding/v1/internal/v1_input.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

using tpu::v1::SplitInputs;

struct V1TableFields {
  std::string name = {};
  int64_t vocabulary_size = 0, dimension = 0;
  std::optional<std::string> combiner = {};
  std::optional<Initializer> initializer = {};
  static constexpr void fields(auto& self, auto&& field) {
    field("name", self.name);
    field("vocabulary_size", self.vocabulary_size);
    field("dimension", self.dimension);
    field("combiner", self.combiner);
    field("initializer", self.initializer);
  }
};

struct V1FeatureFields {
  std::string key = {}, table = {}, weight_key = {};
  int64_t max_sequence_length = 0;
  bool safe = true;
  static constexpr void fields(auto& self, auto&& field) {
    field("key", self.key);
    field("table", self.table);
    field("weight_key", self.weight_key);
    field("max_sequence_length", self.max_sequence_length);
    field("safe", self.safe);
  }
};

template <class Fields>
std::vector<Fields> all_from_config(const Config& list, const char* caller) {
  std::vector<Fields> out;
  for (const Config& item : list.items()) out.push_back(from_config<Fields>(item, caller));
  return out;
}

}  // namespace

EmbeddingFeaturesLayer::EmbeddingFeaturesLayer(Options options)
    : Layer(kClassName, options), options_(std::move(options)) {
  for (const auto& [name, table] : options_.configs.table_to_config_dict) {
    configs_[name] = make_table({.vocabulary_size = table->vocabulary_size,
                                 .dim = table->dimension,
                                 .initializer = table->initializer,
                                 .combiner = table->combiner.value_or("sum"),
                                 .name = name});
  }
}

// May be called before the layer is built, for example to restore the tables. A table is created by
// the first call.
const std::map<std::string, Variable>& EmbeddingFeaturesLayer::tables() {
  for (const auto& [name, table] : configs_) {
    if (tables_.contains(name)) continue;
    tables_[name] = add_weight({.name = name,
                                .shape = {table->vocabulary_size, table->dim},
                                .initializer = table_initializer(*table)});
  }
  return tables_;
}

void EmbeddingFeaturesLayer::build_weights(const Specs&) { tables(); }

Tensors EmbeddingFeaturesLayer::call(const Tensors& inputs, const CallContext&) {
  if (any_symbolic(inputs)) {
    return map_structure(
        Specs(model_feature_specs(specs_of(inputs).entries(), options_.configs)),
        [](const TensorSpec& spec) -> TensorLike { return make_symbolic(spec, nullptr, 0); });
  }
  SplitInputs split = split_inputs(inputs.entries(), options_.configs);
  Tensors::Dict ids;
  Nest<std::optional<TensorLike>>::Dict weights;
  Nest<FeatureConfig>::Dict features;
  for (const auto& [key, input] : split.embedding_inputs) {
    const auto& config = options_.configs.feature_to_config_dict.at(key);
    ids.emplace(key, input.ids);
    weights.emplace(key, input.weights);
    features.emplace(key, FeatureConfig{.table = configs_.at(config->table_id),
                                        .max_sequence_length = config->max_sequence_length,
                                        .validate_weights_and_indices =
                                            std::ranges::find(options_.unsafe_features, key) ==
                                            options_.unsafe_features.end()});
  }
  const Tensors found = host_embedding_lookup(
      ids, Nest<std::optional<TensorLike>>(std::move(weights)), Nest<FeatureConfig>(features),
      [this](const Table& table, const Tensor& rows) {
        return tables_.at(table->name).read_rows(rows);
      });
  Tensors::Dict out = std::move(split.features);
  for (const auto& [key, activation] : found.entries()) out.insert_or_assign(key, activation);
  return out;
}

Config EmbeddingFeaturesLayer::get_config() const {
  Config::List tables, features;
  for (const auto& [name, table] : options_.configs.table_to_config_dict) {
    tables.push_back(to_config(V1TableFields{.name = name,
                                             .vocabulary_size = table->vocabulary_size,
                                             .dimension = table->dimension,
                                             .combiner = table->combiner,
                                             .initializer = table->initializer}));
  }
  for (const auto& [key, feature] : options_.configs.feature_to_config_dict) {
    const auto& unsafe = options_.unsafe_features;
    features.push_back(
        to_config(V1FeatureFields{.key = key,
                                  .table = feature->table_id,
                                  .weight_key = feature->weight_key,
                                  .max_sequence_length = feature->max_sequence_length,
                                  .safe = std::ranges::find(unsafe, key) == unsafe.end()}));
  }
  return Config::dict({{"name", name()},
                       {"trainable", trainable()},
                       {"dtype", encode(dtype_policy())},
                       {"tables", std::move(tables)},
                       {"features", std::move(features)}});
}

std::shared_ptr<EmbeddingFeaturesLayer> EmbeddingFeaturesLayer::from_config(const Config& config) {
  config_internal::reject_unknown_keys(config, {"name", "trainable", "dtype", "tables", "features"},
                                       kClassName);
  Options options;
  if (const Config* name = config.find("name")) decode(*name, options.name);
  if (const Config* trainable = config.find("trainable")) decode(*trainable, options.trainable);
  if (const Config* dtype = config.find("dtype")) decode(*dtype, options.dtype);
  for (const auto& t :
       all_from_config<V1TableFields>(config["tables"], "EmbeddingFeatures table")) {
    options.configs.table_to_config_dict.emplace(
        t.name, tpu::v1::TableOptions{.vocabulary_size = t.vocabulary_size,
                                      .dimension = t.dimension,
                                      .initializer = t.initializer,
                                      .combiner = t.combiner});
  }
  for (const auto& f :
       all_from_config<V1FeatureFields>(config["features"], "EmbeddingFeatures feature")) {
    if (!options.configs.table_to_config_dict.contains(f.table)) {
      throw ValueError("EmbeddingFeatures: feature '", f.key, "' refers to the unknown table '",
                       f.table, "'; add it to the tables");
    }
    if (!f.safe) options.unsafe_features.push_back(f.key);
    options.configs.feature_to_config_dict.emplace(
        f.key, tpu::v1::FeatureOptions{.table_id = f.table,
                                       .max_sequence_length = f.max_sequence_length,
                                       .weight_key = f.weight_key});
  }
  return std::make_shared<EmbeddingFeaturesLayer>(std::move(options));
}

KEEL_REGISTER(Layer, EmbeddingFeaturesLayer)

}  // namespace keel
