#include <keel/layers/embedding/tpu_embedding.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <map>

#include <keel/autodiff/tape.h>
#include <keel/distribute/strategy.h>
#include <keel/layers/embedding/internal/backend.h>
#include <keel/layers/embedding/tables/internal/dynamic_entries.h>
#include <keel/layers/embedding/tables/internal/host_lookup.h>
#include <keel/layers/embedding/tables/internal/kernel_options.h>
#include <keel/layers/embedding/tables/internal/keyed_variable.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/internal/serving_keys.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {
namespace {

// The layer's inputs represent an absent weight as a dense tensor, because real weights are never
// dense.
TensorLike absent_weight() { return Tensor::zeros({0}); }

Tensors pack_weights(const Nest<std::optional<TensorLike>>& weights) {
  return map_structure(weights, [](const std::optional<TensorLike>& w) -> TensorLike {
    return w ? *w : absent_weight();
  });
}

Nest<std::optional<TensorLike>> unpack_weights(const Tensors& weights) {
  return map_structure(weights, [](const TensorLike& w) -> std::optional<TensorLike> {
    const bool absent = w.layout() == Layout::kDense && w.spec().shape == Shape{0};
    return absent ? std::nullopt : std::optional<TensorLike>(w);
  });
}

// Checks the options that do not depend on the strategy.
void check_options(const TPUEmbeddingOptions& options, const TableSet& tables) {
  for (const TableSet::Entry& entry : tables.tables) {
    const EmbeddingOptimizer& optimizer = entry.own->optimizer;
    if (optimizer && optimizer->v1_parameters) {
      throw ValueError(
          "TPUEmbedding: table '", entry.own->name,
          "' requires an embedding optimizer (tpu::SGD, Adagrad, Adam, ...) or a Keras "
          "optimizer, received ",
          optimizer->class_name, " of the V1 engine");
    }
  }
  if (options.partition_strategy != "div" && options.partition_strategy != "mod") {
    throw ValueError("TPUEmbedding: partition_strategy must be div or mod, received '",
                     options.partition_strategy, "'");
  }
  if (options.batch_size && *options.batch_size < 1) {
    throw ValueError("TPUEmbedding: batch_size must be positive, received ", *options.batch_size);
  }
}

// Returns the shape of an activation, without dim, for `rows` rows.
Shape shape_of_batch(const std::string& path, const FeatureConfig& feature, int64_t rows) {
  Shape out = {rows};
  if (!feature.output_shape) {
    if (feature.max_sequence_length > 0) out = {rows, feature.max_sequence_length};
    return out;
  }
  // An output_shape of higher rank applies to ragged ids and is only checked against them.
  if (feature.output_shape->rank() <= 1 && !compatible(*feature.output_shape, out)) {
    throw ValueError("TPUEmbedding: feature '", path, "': output_shape is ", *feature.output_shape,
                     ", but a replica's share of batch_size gives ", out);
  }
  return *feature.output_shape;
}

// Returns true if both structures match.
template <class T>
bool same_structure(const Nest<FeatureConfig>& config, const Nest<T>& features) {
  try {
    assert_same_structure(config, features);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::unique_ptr<TPUEmbeddingLayer::Backend> TPUEmbeddingLayer::make_backend(
    const Options& options, const TableSet& tables, const Nest<FeatureConfig>& features) {
  check_options(options, tables);
  const distribute::Strategy& now = distribute::Strategy::current();
  if (!now.is_tpu()) {
    return std::make_unique<VariableBackend>(tables, features, options.collect_statistics);
  }
  switch (options.embedding_feature.value_or(EmbeddingFeature::kV1)) {
    case EmbeddingFeature::kUnsupported:
      if (options.pipeline_lookups) {
        throw ValueError(
            "TPUEmbedding: pipeline_lookups requires embedding_feature kV1, received kUnsupported");
      }
      reject_dynamic(tables, "TPUEmbedding with EmbeddingFeature kUnsupported");
      return std::make_unique<V0Backend>(tables, features, options.collect_statistics);
    case EmbeddingFeature::kV1:
      break;
    case EmbeddingFeature::kV2:
      throw ValueError(
          "TPUEmbedding: embedding_feature must be kV1 or kUnsupported, received kV2; use "
          "layers::DistributedEmbedding for kV2");
  }
  if (options.batch_size && *options.batch_size % now.num_replicas_in_sync() != 0) {
    throw ValueError(
        "TPUEmbedding: batch_size is the size of the global batch and must be a multiple of the ",
        now.num_replicas_in_sync(), " replicas, received ", *options.batch_size);
  }
  return std::make_unique<EngineBackend>(
      tables, features,
      EngineSessionOptions{
          .pipeline_execution_with_tensor_core = options.pipeline_execution_with_tensor_core,
          .sharding_strategy = options.partition_strategy == "mod"
                                   ? distribute::ShardingStrategy::kMod
                                   : distribute::ShardingStrategy::kDiv,
          .counts_lookups = options.collect_statistics});
}

TPUEmbeddingLayer::TPUEmbeddingLayer(Options options)
    : Layer(kClassName, options),
      options_(std::move(options)),
      tables_(collect_tables(options_.feature_config, options_.optimizer)),
      features_(tables_.on_own_tables(options_.feature_config, kClassName)),
      backend_(make_backend(options_, tables_, features_)) {}

TPUEmbeddingLayer::~TPUEmbeddingLayer() = default;

// With weights, the inputs are a pair of two structures. The structure of the features is finite
// and so never equal to a pair that contains itself.
template <class T>
bool TPUEmbeddingLayer::has_weights(const Nest<T>& inputs) const {
  return inputs.kind() == NestKind::kTuple && inputs.items().size() == 2 &&
         !same_structure(features_, inputs);
}

// Returns the per-replica shapes of the activations, without dim. With an engine, batch_size
// determines the rows if it is set.
std::vector<Shape> TPUEmbeddingLayer::output_shapes(const Specs& inputs) const {
  const Specs& specs = has_weights(inputs) ? inputs[0] : inputs;
  assert_same_structure(features_, specs);
  const std::vector<FeatureConfig> configs = flatten(features_);
  const std::vector<std::string> paths = flatten_paths(features_);
  const std::vector<TensorSpec> flat = flatten(specs);
  const int replicas = distribute::Strategy::current().num_replicas_in_sync();
  std::vector<Shape> out;
  for (size_t f = 0; f < configs.size(); ++f) {
    out.push_back(bags_output_shape(paths[f], configs[f], flat[f], backend_->pools_dense()));
    warn_of_unused_length(paths[f], configs[f], flat[f]);
    if (backend_->pools_dense() && options_.batch_size) {
      out.back() = shape_of_batch(paths[f], configs[f], *options_.batch_size / replicas);
    }
  }
  return out;
}

void TPUEmbeddingLayer::build_weights(const Specs& inputs) {
  backend_->check_strategy();
  for (const Variable& variable : backend_->build(output_shapes(inputs))) add_weight(variable);
}

Tensors TPUEmbeddingLayer::operator()(const Tensors& features, const CallOptions& options) {
  if (options.serving_config) {
    if (!built())
      throw RuntimeError("TPUEmbedding ", name(), ": the layer is not built; call it once first");
    if (any_symbolic(features)) {
      throw RuntimeError("TPUEmbedding ", name(),
                         ": serving_config requires eager tensors, received symbolic ones");
    }
    return host_embedding_lookup(
        features, options.weights,
        tables_.on_own_tables(*options.serving_config, "TPUEmbedding serving_config"),
        [this](const Table& table, const Tensor&) { return backend_->read(tables_.find(table)); },
        {.look_up_keys = [this](const Table& table, FeatureBags& bags) {
          return inference_rows(backend_->keyed_table(tables_.find(table), true), bags);
        }});
  }
  const keel::CallOptions base = {.training = options.training};
  if (!options.weights) return Layer::operator()(features, base);
  return Layer::operator()(Tensors::tuple({features, pack_weights(*options.weights)}), base);
}

Tensor TPUEmbeddingLayer::operator()(const Tensor& feature, const CallOptions& options) {
  return (*this)(Tensors(feature), options).tensor();
}

Tensors TPUEmbeddingLayer::replay(const Tensors& inputs, const keel::CallOptions& options) {
  return Layer::operator()(inputs, options);
}

Tensors TPUEmbeddingLayer::call(const Tensors& inputs, const CallContext&) {
  backend_->check_strategy();
  if (!has_weights(inputs)) return backend_->lookup(inputs, std::nullopt, features_);
  return backend_->lookup(inputs[0], unpack_weights(inputs[1]), features_);
}

void TPUEmbeddingLayer::prefetch(const Tensors& features,
                                 const std::optional<Nest<std::optional<TensorLike>>>& weights) {
  backend_->check_strategy();
  if (built()) backend_->prefetch(features, weights);
}

bool TPUEmbeddingLayer::supports_prefetch() const {
  return options_.pipeline_lookups && backend_->supports_prefetch();
}

void TPUEmbeddingLayer::prefetch(const Tensors& inputs) {
  if (!has_weights(inputs)) return prefetch(inputs, std::nullopt);
  prefetch(inputs[0], unpack_weights(inputs[1]));
}

std::vector<std::pair<Table, Tensor>> TPUEmbeddingLayer::embedding_tables() const {
  if (!built())
    throw RuntimeError("TPUEmbedding ", name(), ": the layer is not built; call it once first");
  const NoGradient pause;
  std::vector<std::pair<Table, Tensor>> out;
  for (size_t t = 0; t < tables_.tables.size(); ++t) {
    out.emplace_back(tables_.tables[t].original, backend_->read(static_cast<int>(t)));
  }
  return out;
}

void TPUEmbeddingLayer::update_embedding_table(const Table& table, const Tensor& values) {
  if (!built())
    throw RuntimeError("TPUEmbedding ", name(), ": the layer is not built; call it once first");
  const int found = tables_.find(table);
  if (found < 0) return;
  if (tables_.tables[found].own->dynamic) {
    throw ValueError("update_embedding_table: table '", tables_.tables[found].own->name,
                     "' has dynamic ids and no numbered rows; use "
                     "dynamic_table(table).assign_rows(keys, values)");
  }
  backend_->write(found, values);
}

DynamicTable TPUEmbeddingLayer::dynamic_table(const Table& table) const {
  const int found = find_dynamic(tables_, table, "layer " + name());
  if (!built())
    throw RuntimeError("TPUEmbedding ", name(), ": the layer is not built; call it once first");
  return DynamicTable([backend = backend_, found](bool drain) -> distribute::KeyedTable& {
    return backend->keyed_table(found, drain);
  });
}

std::vector<std::pair<std::string, DynamicTable>> TPUEmbeddingLayer::dynamic_tables() const {
  std::vector<std::pair<std::string, DynamicTable>> out;
  for (const TableSet::Entry& table : tables_.tables) {
    if (!built() || !table.own->dynamic) continue;
    out.emplace_back(table.own->name, dynamic_table(table.original));
  }
  return out;
}

std::vector<std::pair<std::string, IdCounts>> TPUEmbeddingLayer::id_counts() const {
  std::vector<std::pair<std::string, IdCounts>> out;
  for (const std::string& path : flatten_paths(features_)) {
    out.emplace_back(path, backend_->invalid_ids(out.size()));
  }
  return out;
}

std::vector<std::pair<Table, LookupStatistics>> TPUEmbeddingLayer::lookup_statistics() const {
  if (!options_.collect_statistics) {
    throw RuntimeError("TPUEmbedding ", name(),
                       ": lookup_statistics() requires the option collect_statistics");
  }
  std::vector<std::pair<Table, LookupStatistics>> out;
  for (const TableSet::Entry& entry : tables_.tables) {
    out.emplace_back(entry.original, backend_->statistics(out.size()));
  }
  return out;
}

std::vector<std::string> TPUEmbeddingLayer::training_notices() const {
  std::vector<std::string> out;
  for (size_t t = 0; t < tables_.tables.size() && options_.collect_statistics; ++t) {
    out.push_back(absl::StrCat("TPUEmbedding ", name(), ": table '", tables_.tables[t].own->name,
                               "': ", text_of(backend_->statistics(t))));
  }
  for (const auto& [path, counts] : id_counts()) {
    const std::vector<std::string> lines =
        notices_of(absl::StrCat("TPUEmbedding ", name()), path, counts);
    out.insert(out.end(), lines.begin(), lines.end());
  }
  for (size_t t = 0; t < tables_.tables.size() && built(); ++t) {
    const TableConfig& table = *tables_.tables[t].own;
    if (!table.dynamic) continue;
    out.push_back(
        dynamic_notice(absl::StrCat("TPUEmbedding ", name(), ": table '", table.name, "'"),
                       backend_->keyed_table(static_cast<int>(t), false).statistics()));
  }
  return out;
}

std::vector<StateEntry> TPUEmbeddingLayer::state_entries() const {
  std::vector<StateEntry> out = Layer::state_entries();
  // The values of variables do not hold the ids of their rows.
  std::erase_if(out, [this](const StateEntry& entry) {
    return std::ranges::any_of(tables_.tables, [&](const TableSet::Entry& table) {
      return table.own->dynamic && table.own->name == entry.name;
    });
  });
  const std::vector<StateEntry> entries = backend_->state_entries();
  out.insert(out.end(), entries.begin(), entries.end());
  return out;
}

namespace {

// Returns true if a plan can look up the feature. Otherwise the plan calls the layer.
bool can_plan(const FeatureConfig& feature, Layout layout) {
  const bool is_dense = layout == Layout::kDense;
  if (feature.table->dynamic) return is_dense || !feature.output_shape;
  const bool sparse_error =
      layout == Layout::kSparse && feature.id_policy.kind == IdPolicy::Kind::kError;
  const bool counts = feature.id_policy.kind == IdPolicy::Kind::kIgnore ||
                      feature.id_policy.kind == IdPolicy::Kind::kDefaultRow;
  return feature.max_sequence_length == 0 && !sparse_error && !counts &&
         (is_dense || !feature.output_shape);
}

}  // namespace

std::optional<PlanValues> TPUEmbeddingLayer::plan(Planner& planner,
                                                  const PlanValues& inputs) const {
  const std::optional<LookupRules> rules = backend_->host_rules();
  if (!rules) {
    throw RuntimeError("ServingPlan: the tables of TPUEmbedding ", name(),
                       " belong to the engine of a TPUStrategy; save the model and create the plan "
                       "from the result of load_model outside the strategy");
  }
  const bool weighted = has_weights(inputs);
  const PlanValues& features = weighted ? inputs[0] : inputs;
  const std::vector<PlanValue> weights = weighted ? flatten(inputs[1]) : std::vector<PlanValue>();
  const std::vector<FeatureConfig> configs = flatten(features_);
  const std::vector<std::string> paths = flatten_paths(features_);
  const NoGradient pause;
  std::map<int, std::shared_ptr<const ServingKeys>> keys;  // by table
  std::vector<PlanValue> out;
  for (PlanValue ids : flatten(features)) {
    const size_t f = out.size();
    const FeatureConfig& feature = configs[f];
    const Layout layout = planner.spec(ids).layout;
    // An absent weight is represented by a dense tensor.
    const bool has_weight =
        weighted && planner.spec(weights[f]).layout != Layout::kDense && layout != Layout::kDense;
    if (!can_plan(feature, layout)) return {};
    const bool takes_max = feature.table->combiner == "max" && layout != Layout::kDense;
    if (takes_max && has_weight) return {};  // the layer throws
    const int t = tables_.find(feature.table);
    std::shared_ptr<const ServingKeys> of_table;
    InvalidKeys invalid_keys = InvalidKeys::kAccept;
    std::function<void(int64_t)> count_dropped;
    if (feature.table->dynamic) {
      if (feature.id_policy.kind == IdPolicy::Kind::kError) invalid_keys = InvalidKeys::kReject;
      if (feature.id_policy.kind == IdPolicy::Kind::kIgnore) {
        invalid_keys = InvalidKeys::kDrop;
        count_dropped = [backend = backend_, f](int64_t n) { backend->count_dropped(f, n); };
      }
      of_table = keys[t];
      if (of_table == nullptr) {
        of_table = std::make_shared<const ServingKeys>(backend_->keyed_table(t, true).state(),
                                                       *feature.table->dynamic);
        keys[t] = of_table;
      }
    }
    const auto found = planner.look_up(
        {.caller = "TPUEmbedding: feature '" + paths[f] + "'",
         .table = of_table == nullptr ? backend_->read(t) : of_table->table(),
         .scales = {},
         .ids = ids,
         .weights = has_weight ? std::optional(weights[f]) : std::nullopt,
         .combiner = lookup_combiner(*feature.table),
         .takes_max = takes_max,
         .prunes = of_table == nullptr && layout == Layout::kSparse &&
                   *rules == LookupRules::kHost && feature.validate_weights_and_indices,
         .int8 = nullptr,
         .keys = of_table,
         .invalid_keys = invalid_keys,
         .count_dropped = std::move(count_dropped),
         .sequence_length = of_table != nullptr && is_sequence(feature, planner.spec(ids))
                                ? feature.max_sequence_length
                                : 0});
    if (!found) return {};
    out.push_back(*found);
  }
  return pack_sequence_as(features, out);
}

KEEL_REGISTER(Layer, TPUEmbeddingLayer)

}  // namespace keel
