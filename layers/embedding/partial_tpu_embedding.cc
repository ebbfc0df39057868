#include <keel/layers/embedding/partial_tpu_embedding.h>

#include <absl/strings/str_cat.h>
#include <set>

#include <keel/layers/embedding/tables/internal/feature_format.h>
#include <keel/layers/embedding/tables/internal/host_lookup.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

const char* const kCaller = PartialTPUEmbeddingLayer::kClassName;

const Nest<FeatureConfig>& checked(const PartialTPUEmbeddingOptions& options) {
  for (const auto& [name, feature] : options.feature_config.entries()) {
    if (!feature.is_leaf()) {
      throw TypeError(kCaller, ": feature_config must be a dict of features, received ",
                      feature.structure(), " at '", name, "'");
    }
  }
  if (options.size_threshold && *options.size_threshold < 0) {
    throw ValueError(kCaller, ": size_threshold must not be negative, received ",
                     *options.size_threshold);
  }
  return options.feature_config;
}

// Returns the entries of `inputs` that `features` names.
Tensors part_of(const Tensors& inputs, const auto& features) {
  Tensors::Dict out;
  for (const auto& [name, feature] : features) out.emplace(name, inputs[name]);
  return out;
}

}  // namespace

PartialTPUEmbeddingLayer::PartialTPUEmbeddingLayer(Options options)
    : Layer(kClassName, options),
      options_(std::move(options)),
      tables_(collect_tables(checked(options_), options_.optimizer)) {
  const Nest<FeatureConfig> features = tables_.on_own_tables(options_.feature_config, kCaller);
  Nest<FeatureConfig>::Dict large;
  for (const auto& [name, feature] : features.entries()) {
    if (is_large(feature.leaf())) {
      large.emplace(name, feature);
    } else {
      add_small(name, feature.leaf());
    }
  }
  invalid_ids_ = std::make_unique<InvalidIdCounter>(small_features_.size());
  if (options_.collect_statistics) {
    lookup_counter_ = std::make_unique<LookupCounter>(tables_.tables.size());
  }
  if (large.empty()) return;
  tpu_embedding_ = track(layers::TPUEmbedding(
      {.feature_config = std::move(large),
       .pipeline_execution_with_tensor_core = options_.pipeline_execution_with_tensor_core,
       .collect_statistics = options_.collect_statistics,
       .batch_size = options_.batch_size}));
}

PartialTPUEmbeddingLayer::~PartialTPUEmbeddingLayer() = default;

bool PartialTPUEmbeddingLayer::is_large(const FeatureConfig& feature) const {
  // Only an engine has tables with dynamic ids.
  if (feature.table->dynamic) return true;
  return options_.size_threshold && feature.table->vocabulary_size > *options_.size_threshold;
}

void PartialTPUEmbeddingLayer::add_small(const std::string& name, const FeatureConfig& feature) {
  const TableConfig& table = *feature.table;
  using Penalty = std::pair<const char*, double>;
  for (const auto& [option, value] :
       {Penalty("l2", table.l2), Penalty("max_norm", table.max_norm)}) {
    if (value == 0) continue;
    throw NotImplementedError(kCaller, ": table '", table.name, "' of feature '", name,
                              "' is small and has ", option,
                              ", which only large tables support; lower size_threshold");
  }
  // Features that share a table share one Embedding layer.
  const auto known = std::ranges::find_if(small_features_, [&](const auto& entry) {
    return entry.second.leaf().table == feature.table;
  });
  const auto layer =
      known != small_features_.end()
          ? keras_embedding_layers_.at(known->first)
          : track(layers::Embedding(
                {.input_dim = table.vocabulary_size,
                 .output_dim = table.dim,
                 .embeddings_initializer = table.initializer.value_or(Initializer("uniform")),
                 .trainable = table.trainable}));
  keras_embedding_layers_.emplace(name, layer);
  // A lookup of dense ids is a plain gather that keeps their shape: max_sequence_length and
  // output_shape do not apply.
  small_features_.emplace(
      name,
      FeatureConfig{.table = feature.table, .name = feature.name, .id_policy = feature.id_policy});
}

void PartialTPUEmbeddingLayer::build_weights(const Specs& inputs) {
  assert_same_structure(options_.feature_config, inputs);
  for (const auto& [name, layer] : keras_embedding_layers_) {
    layer->build(Specs(TensorSpec{.shape = {kUnknown}, .dtype = DType::kInt64}));
  }
}

Tensors PartialTPUEmbeddingLayer::call(const Tensors& inputs, const CallContext& context) {
  assert_same_structure(options_.feature_config, inputs);
  for (const auto& [name, feature] : small_features_) {
    if (inputs[name].leaf().layout() != Layout::kDense) {
      throw ValueError(kCaller, ": feature '", name,
                       "' has a table below size_threshold, which requires dense ids; pass dense "
                       "ids or lower size_threshold");
    }
  }
  const auto table_of = [&](const Table& table, const Tensor& rows) {
    const auto found = std::ranges::find_if(
        small_features_, [&](const auto& entry) { return entry.second.leaf().table == table; });
    return keras_embedding_layers_.at(found->first)->embeddings().read_rows(rows);
  };
  const HostLookupOptions lookups = {
      .counter = invalid_ids_.get(),
      .statistics = lookup_counter_.get(),
      .table_index = [this](const Table& table) -> size_t { return tables_.find(table); }};
  Tensors::Dict out = host_embedding_lookup(part_of(inputs, small_features_), {}, small_features_,
                                            table_of, lookups)
                          .entries();
  if (tpu_embedding_) {
    const auto& large = (*tpu_embedding_)->feature_config().entries();
    out.merge((*tpu_embedding_)(part_of(inputs, large), {.training = context.training}).entries());
  }
  return out;
}

std::map<std::string, LookupStatistics> PartialTPUEmbeddingLayer::lookup_statistics() const {
  if (lookup_counter_ == nullptr) {
    throw RuntimeError(kCaller, " ", name(),
                       ": lookup_statistics() requires the option collect_statistics");
  }
  std::map<std::string, LookupStatistics> out;
  for (const auto& [feature, config] : small_features_) {
    const int table = tables_.find(config.leaf().table);
    out[tables_.tables[table].own->name] = lookup_counter_->statistics(table);
  }
  if (!tpu_embedding_) return out;
  for (const auto& [table, counts] : (*tpu_embedding_)->lookup_statistics()) {
    out[tables_.tables[tables_.find(table)].own->name] = counts;
  }
  return out;
}

std::vector<std::string> PartialTPUEmbeddingLayer::training_notices() const {
  std::vector<std::string> out;
  std::set<int> small;
  for (const auto& [feature, config] : small_features_) {
    const int table = tables_.find(config.leaf().table);
    if (lookup_counter_ == nullptr || !small.insert(table).second) continue;
    out.push_back(absl::StrCat(kCaller, " ", name(), ": table '", tables_.tables[table].own->name,
                               "': ", text_of(lookup_counter_->statistics(table))));
  }
  size_t f = 0;
  for (const auto& [feature, config] : small_features_) {
    const std::vector<std::string> lines =
        notices_of(absl::StrCat(kCaller, " ", name()), feature, invalid_ids_->counts(f++));
    out.insert(out.end(), lines.begin(), lines.end());
  }
  return out;
}

Config PartialTPUEmbeddingLayer::get_config() const {
  Config out = Config::dict(
      {{"name", name()},
       {"trainable", trainable()},
       {"dtype", encode(dtype_policy())},
       {"tables", encode_tables(tables_)},
       {"feature_config", encode_features(options_.feature_config, tables_)},
       {"pipeline_execution_with_tensor_core", options_.pipeline_execution_with_tensor_core},
       {"batch_size", encode(options_.batch_size)},
       {"size_threshold", encode(options_.size_threshold)}});
  if (options_.collect_statistics) out.set("collect_statistics", true);
  return out;
}

std::shared_ptr<PartialTPUEmbeddingLayer> PartialTPUEmbeddingLayer::from_config(
    const Config& config) {
  config_internal::reject_unknown_keys(
      config,
      {"name", "trainable", "dtype", "tables", "feature_config",
       "pipeline_execution_with_tensor_core", "batch_size", "size_threshold", "collect_statistics"},
      kClassName);
  Options options{.feature_config =
                      decode_features(config["feature_config"], decode_tables(config["tables"]))};
  const auto read = [&](const char* key, auto& value) {
    const Config* const found = config.find(key);
    if (found != nullptr && !found->is_null()) decode(*found, value);
  };
  read("name", options.name);
  read("trainable", options.trainable);
  read("dtype", options.dtype);
  read("pipeline_execution_with_tensor_core", options.pipeline_execution_with_tensor_core);
  read("batch_size", options.batch_size);
  read("collect_statistics", options.collect_statistics);
  // Null is a valid value here: no table is large.
  if (const Config* const found = config.find("size_threshold")) {
    decode(*found, options.size_threshold);
  }
  return std::make_shared<PartialTPUEmbeddingLayer>(std::move(options));
}

KEEL_REGISTER(Layer, PartialTPUEmbeddingLayer)

}  // namespace keel
