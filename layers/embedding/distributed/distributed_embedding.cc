#include <keel/layers/embedding/distributed/distributed_embedding.h>

#include <algorithm>
#include <map>
#include <set>

#include <keel/autodiff/tape.h>
#include <keel/distribute/strategy.h>
#include <keel/layers/embedding/distributed/internal/feature_configs.h>
#include <keel/layers/embedding/distributed/internal/id_limits.h>
#include <keel/layers/embedding/distributed/internal/sparse_core.h>
#include <keel/layers/embedding/internal/id_rows_plan.h>
#include <keel/layers/embedding/tables/internal/dynamic_entries.h>
#include <keel/layers/embedding/tables/internal/id_rows.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/internal/serving_keys.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {
namespace {

constexpr const char* kPreprocessed = "preprocessed_inputs_per_placement";
constexpr const char* kSparsecore = "sparsecore";
constexpr const char* kDefaultDevice = "default_device";

// A table on the default device. It lists no state itself: the DistributedEmbedding lists it under
// the table's name.
class DeviceTable final : public EmbedReduceLayer {
 public:
  using EmbedReduceLayer::EmbedReduceLayer;
  std::vector<StateEntry> state_entries() const override { return {}; }
  std::vector<std::pair<std::string, DynamicTable>> dynamic_tables() const override { return {}; }
  std::vector<std::string> training_notices() const override { return {}; }
};

bool is_preprocessed(const NestKind kind, const auto& inputs) {
  return kind == NestKind::kDict && inputs.entries().contains(kPreprocessed);
}

// Calls fn() and adds the feature's path to the errors it throws.
template <class Fn>
auto at_feature(const std::string& path, const Fn& fn) {
  const auto message = [&](const Error& error) {
    return str("DistributedEmbedding: feature '", path, "': ", error.what());
  };
  try {
    return fn();
  } catch (const ValueError& error) {
    throw ValueError(message(error));
  } catch (const TypeError& error) {
    throw TypeError(message(error));
  }
}

// Checks the dimensions that must be the same in every batch: all dimensions of dense ids; the row
// lengths of sparse and ragged ids may differ.
void check_shape(const keras_rs::FeatureConfig& config, const Shape& shape, bool dense,
                 bool check_batch) {
  const Shape& expected = config.input_shape;
  const auto fits = [&](int64_t batch) {
    const Shape wanted = {batch};
    return compatible(shape.slice(0, 1), wanted);
  };
  bool ok = shape.rank() == expected.rank();
  if (ok && dense && shape.rank() == 2) ok = compatible(shape.slice(1, 2), expected.slice(1, 2));
  if (ok && check_batch && expected[0] != kUnknown) {
    const int replicas = distribute::Strategy::current().num_replicas_in_sync();
    ok = fits(expected[0]) || (expected[0] % replicas == 0 && fits(expected[0] / replicas));
  }
  if (!ok) throw ValueError("ids must have shape ", expected, ", received ", shape);
}

}  // namespace

struct DistributedEmbeddingLayer::Table {
  keras_rs::Table original;                             // the object in the user's FeatureConfigs
  std::shared_ptr<const keras_rs::TableConfig> config;  // a copy
  bool sparsecore = false;
  std::shared_ptr<EmbedReduceLayer> layer = nullptr;  // on the default device
  int position = 0;                                   // position among the tables on sparse cores
};

struct DistributedEmbeddingLayer::Feature {
  std::string path;
  keras_rs::FeatureConfig config;
  int table = 0;

  int64_t max_row_length() const {
    return config.input_shape.rank() == 2 ? config.input_shape[1] : kUnknown;
  }
};

struct DistributedEmbeddingLayer::Input {
  TensorLike ids;
  std::optional<TensorLike> weights = {};
};

DistributedEmbeddingLayer::DistributedEmbeddingLayer(Options options)
    : Layer(kClassName, options), options_(std::move(options)) {
  collect_features();
  make_tables();
  if (options_.update_stats && sparse_core_ == nullptr) {
    throw ValueError("DistributedEmbedding ", name(),
                     ": update_stats requires a table on sparse cores, whose limits it adjusts; "
                     "create the layer under a TPUStrategy");
  }
}

DistributedEmbeddingLayer::~DistributedEmbeddingLayer() = default;

bool DistributedEmbeddingLayer::has_sparsecores() {
  return distribute::Strategy::current().is_tpu();
}

// Collects the features and their tables, each table once, and chooses the placements.
void DistributedEmbeddingLayer::collect_features() {
  std::set<std::string> paths, names;
  for_each_leaf(options_.feature_configs, [&](const std::string& path,
                                              const keras_rs::FeatureConfig& config) {
    keras_rs::check_feature(path, config);
    if (!paths.insert(path).second) {
      throw ValueError("DistributedEmbedding ", name(), ": two features have the path '", path,
                       "'; rename one of them");
    }
    const keras_rs::TableConfig& table = *config.table;
    auto it = std::ranges::find(tables_, config.table, &Table::original);
    features_.push_back(
        {.path = path, .config = config, .table = static_cast<int>(it - tables_.begin())});
    if (it != tables_.end()) return;
    if (!names.insert(table.name).second) {
      throw ValueError("DistributedEmbedding ", name(), ": two tables are named '", table.name,
                       "'; rename one of them");
    }
    if (table.placement == kSparsecore && !has_sparsecores()) {
      throw ValueError(
          "DistributedEmbedding ", name(), ": feature '", path, "': table '", table.name,
          "' has placement sparsecore, which requires a TPUStrategy, received ",
          distribute::Strategy::current().name(), "; set its placement to auto or default_device");
    }
    tables_.push_back({.original = config.table,
                       .config = std::make_shared<const keras_rs::TableConfig>(table),
                       .sparsecore = table.placement == kSparsecore ||
                                     (table.placement == "auto" && has_sparsecores())});
  });
}

// Creates the sublayers of tables on the default device and the SparseCore of the others.
void DistributedEmbeddingLayer::make_tables() {
  SparseCoreOptions sparse = {.name = name(),
                              .table_stacking = options_.table_stacking,
                              .id_limit_policy = options_.id_limit_policy,
                              .update_stats = options_.update_stats};
  for (Table& table : tables_) {
    const keras_rs::TableConfig& config = *table.config;
    if (table.sparsecore) {
      table.position = static_cast<int>(sparse.tables.size());
      sparse.tables.push_back(table.config);
      continue;
    }
    table.layer = track(make_layer<DeviceTable>(
                            EmbedReduceOptions{.input_dim = config.vocabulary_size,
                                               .output_dim = config.embedding_dim,
                                               .embeddings_initializer = table_initializer(config),
                                               .combiner = config.combiner,
                                               .dynamic = config.dynamic,
                                               .name = config.name,
                                               .dtype = dtype()}))
                      .shared();
  }
  for (const Feature& feature : features_) {
    const Table& table = tables_[feature.table];
    if (!table.sparsecore) continue;
    const int64_t batch = feature.config.output_shape[0];
    sparse.features.push_back(
        {.path = feature.path, .table = table.position, .samples = batch == kUnknown ? 0 : batch});
  }
  if (!sparse.tables.empty()) sparse_core_ = std::make_unique<SparseCore>(std::move(sparse));
}

void DistributedEmbeddingLayer::build_weights(const Specs& inputs) {
  if (!is_preprocessed(inputs.kind(), inputs)) check_specs(inputs);
  // Draws the streams in table order, regardless of placement, so that all placements start with
  // the same values.
  std::vector<RandomStream> streams;
  for (const Table& table : tables_) {
    if (table.layer != nullptr) {
      const bool strings = table.config->dynamic && table.config->dynamic->key == KeyType::kString;
      table.layer->build(
          TensorSpec{.shape = {kUnknown}, .dtype = strings ? DType::kString : DType::kInt64});
    } else {
      streams.push_back(table_initializer(*table.config).next_stream());
    }
  }
  if (sparse_core_ != nullptr) add_weight(sparse_core_->build(streams));
}

void DistributedEmbeddingLayer::check_structure(const Tensors& inputs,
                                                const Weights& weights) const {
  assert_same_structure(options_.feature_configs, inputs);
  if (weights) assert_same_structure(options_.feature_configs, *weights);
}

void DistributedEmbeddingLayer::check_spec(const Feature& feature, const TensorSpec& ids) const {
  const auto& dynamic = tables_[feature.table].config->dynamic;
  if (dynamic) {
    check_key_spec("ids", dynamic->key, ids);
  } else {
    check_id_spec("ids", ids);
  }
}

// Checks the specs at build, including the batch dimension. Later batches may be shorter, so call()
// does not compare it.
void DistributedEmbeddingLayer::check_specs(const Specs& inputs) const {
  assert_same_structure(options_.feature_configs, inputs);
  const std::vector<TensorSpec> specs = flatten(inputs);
  for (size_t f = 0; f < features_.size(); ++f) {
    at_feature(features_[f].path, [&] {
      check_spec(features_[f], specs[f]);
      check_shape(features_[f].config, specs[f].shape, specs[f].layout == Layout::kDense, true);
    });
  }
}

Nest<Shape> DistributedEmbeddingLayer::compute_output_shape(const Nest<Shape>& input_shapes) const {
  assert_same_structure(options_.feature_configs, input_shapes);
  const std::vector<Shape> shapes = flatten(input_shapes);
  for (size_t f = 0; f < features_.size(); ++f) {
    at_feature(features_[f].path, [&] { check_shape(features_[f].config, shapes[f], true, true); });
  }
  return map_structure(options_.feature_configs,
                       [](const keras_rs::FeatureConfig& config) { return config.output_shape; });
}

Tensors DistributedEmbeddingLayer::operator()(const Tensors& inputs, const CallOptions& options) {
  const keel::CallOptions base = {.training = options.training};
  if (!options.weights) return Layer::operator()(inputs, base);
  if (is_preprocessed(inputs.kind(), inputs)) {
    throw ValueError(
        "DistributedEmbedding ", name(),
        ": received preprocessed inputs and weights; pass the weights to preprocess()");
  }
  return Layer::operator()(preprocess(inputs, options), base);
}

Tensor DistributedEmbeddingLayer::operator()(const Tensor& input, const CallOptions& options) {
  return (*this)(Tensors(input), options).tensor();
}

Tensors DistributedEmbeddingLayer::replay(const Tensors& inputs, const keel::CallOptions& options) {
  return Layer::operator()(inputs, options);
}

Tensors DistributedEmbeddingLayer::preprocess(const Tensors& inputs, const CallOptions& options) {
  check_structure(inputs, options.weights);
  if (!built()) build(specs_of(inputs));
  return group_by_placement(inputs, options.weights);
}

Tensors DistributedEmbeddingLayer::group_by_placement(const Tensors& inputs,
                                                      const Weights& weights) const {
  const std::vector<TensorLike> ids = flatten(inputs);
  const auto flat_weights =
      weights ? flatten(*weights) : std::vector<std::optional<TensorLike>>(ids.size());
  std::map<std::string, std::map<std::string, Tensors::Dict>> groups;
  for (size_t f = 0; f < features_.size(); ++f) {
    const Feature& feature = features_[f];
    auto& group = groups[tables_[feature.table].sparsecore ? kSparsecore : kDefaultDevice];
    group["inputs"].emplace(feature.path, ids[f]);
    if (flat_weights[f]) group["weights"].emplace(feature.path, *flat_weights[f]);
  }
  Tensors::Dict placements;
  for (auto& [placement, group] : groups) {
    Tensors::Dict parts;
    for (auto& [part, by_path] : group) parts.emplace(part, std::move(by_path));
    placements.emplace(placement, std::move(parts));
  }
  return Tensors::dict({{kPreprocessed, std::move(placements)}});
}

std::vector<DistributedEmbeddingLayer::Input> DistributedEmbeddingLayer::inputs_of(
    const Tensors& preprocessed) const {
  const Tensors& placements = preprocessed[kPreprocessed];
  const auto find = [](const Tensors& dict, const std::string& key) -> const Tensors* {
    const auto it = dict.entries().find(key);
    return it == dict.entries().end() ? nullptr : &it->second;
  };
  std::vector<Input> out;
  for (const Feature& feature : features_) {
    const char* placement = tables_[feature.table].sparsecore ? kSparsecore : kDefaultDevice;
    const Tensors* group = find(placements, placement);
    const Tensors* ids = group == nullptr ? nullptr : find((*group)["inputs"], feature.path);
    if (ids == nullptr) {
      throw ValueError("DistributedEmbedding ", name(), ": feature '", feature.path,
                       "' is missing from the preprocessed inputs of placement ", placement,
                       "; pass the output of this layer's preprocess()");
    }
    Input input = {.ids = ids->leaf()};
    if (const Tensors* weights = find(*group, "weights")) {
      if (const Tensors* w = find(*weights, feature.path)) input.weights = w->leaf();
    }
    out.push_back(std::move(input));
  }
  return out;
}

Tensors DistributedEmbeddingLayer::call(const Tensors& inputs, const CallContext&) {
  const bool raw = !is_preprocessed(inputs.kind(), inputs);
  if (raw) check_structure(inputs, {});
  const std::vector<Input> of_features = inputs_of(raw ? group_by_placement(inputs, {}) : inputs);
  for (size_t f = 0; f < features_.size(); ++f) {
    at_feature(features_[f].path, [&] {
      const TensorSpec spec = of_features[f].ids.spec();
      check_spec(features_[f], spec);
      check_shape(features_[f].config, spec.shape, spec.layout == Layout::kDense, false);
    });
  }
  std::vector<Tensor> out(features_.size());
  if (any_symbolic(inputs)) {
    for (size_t f = 0; f < features_.size(); ++f) {
      const Table& table = tables_[features_[f].table];
      out[f] = Tensor::symbolic(
          {.shape = {of_features[f].ids.spec().shape[0], table.config->embedding_dim},
           .dtype = table.sparsecore ? DType::kFloat32 : dtype()});
    }
  } else {
    for (size_t f = 0; f < features_.size(); ++f) {
      if (tables_[features_[f].table].sparsecore) continue;
      out[f] = look_up_default(features_[f], of_features[f]);
    }
    if (sparse_core_ != nullptr) look_up_sparsecore(of_features, out);
  }
  return map_structure(pack_sequence_as(options_.feature_configs, out),
                       [](const Tensor& t) -> TensorLike { return t; });
}

Tensor DistributedEmbeddingLayer::look_up_default(const Feature& feature,
                                                  const Input& input) const {
  const Table& table = tables_[feature.table];
  return at_feature(feature.path, [&] {
    if (input.ids.layout() == Layout::kDense || feature.max_row_length() == kUnknown) {
      return (*table.layer)(Tensors(input.ids), {.weights = input.weights}).tensor();
    }
    // EmbedReduce has no limit on the row length, so rows are truncated here.
    const IdRows rows = rows_of(feature, input);
    EmbedReduceCallOptions options;
    if (rows.weights) options.weights = RaggedTensor{rows.weights, rows.row_splits};
    return (*table.layer)(Tensors(RaggedTensor{rows.ids, rows.row_splits}), options).tensor();
  });
}

// Weights are those of preprocess(), whose result a model that passes weights records as input.
std::optional<PlanValues> DistributedEmbeddingLayer::plan(Planner& planner,
                                                          const PlanValues& inputs) const {
  const auto is_dynamic = [](const Table& table) { return table.config->dynamic.has_value(); };
  if (sparse_core_ != nullptr || std::ranges::none_of(tables_, is_dynamic)) return {};
  const NoGradient pause;
  const auto find = [](const PlanValues* dict, const std::string& key) -> const PlanValues* {
    if (dict == nullptr || dict->kind() != NestKind::kDict) return nullptr;
    const auto it = dict->entries().find(key);
    return it == dict->entries().end() ? nullptr : &it->second;
  };
  const bool raw = !is_preprocessed(inputs.kind(), inputs);
  const PlanValues* const group =
      raw ? nullptr : find(find(&inputs, kPreprocessed), kDefaultDevice);
  const std::vector<PlanValue> flat = raw ? flatten(inputs) : std::vector<PlanValue>();
  if (raw && flat.size() != features_.size()) return {};
  std::map<int, std::shared_ptr<const ServingKeys>> keys;  // by table
  std::vector<PlanValue> out;
  for (size_t f = 0; f < features_.size(); ++f) {
    const Feature& feature = features_[f];
    const Table& table = tables_[feature.table];
    const PlanValues* const ids = raw ? nullptr : find(find(group, "inputs"), feature.path);
    if (!raw && (ids == nullptr || !ids->is_leaf())) return {};
    const PlanValues* const weights = find(find(group, "weights"), feature.path);
    IdRowsPlan rows = {
        .caller = str("DistributedEmbedding: feature '", feature.path, "'"),
        .ids = raw ? flat[f] : ids->leaf(),
        .weights = weights == nullptr ? std::nullopt : std::optional(weights->leaf()),
        .combiner = table.config->combiner,
        .max_row_length = feature.max_row_length()};
    if (is_dynamic(table)) {
      std::shared_ptr<const ServingKeys>& of_table = keys[feature.table];
      if (of_table == nullptr) {
        const DynamicTable handle = table.layer->dynamic_table();
        of_table = std::make_shared<const ServingKeys>(handle.state(), handle.options());
      }
      rows.keys = of_table;
    } else {
      rows.table = table.layer->embeddings().read();
    }
    const auto found = plan_id_rows(planner, rows);
    if (!found) return {};
    out.push_back(*found);
  }
  return pack_sequence_as(options_.feature_configs, out);
}

IdRows DistributedEmbeddingLayer::rows_of(const Feature& feature, const Input& input) const {
  const keras_rs::TableConfig& table = *tables_[feature.table].config;
  const IdRowsOptions options = {.vocabulary_size = table.vocabulary_size,
                                 .combiner = table.combiner,
                                 .max_row_length = feature.max_row_length()};
  if (!table.dynamic) return to_id_rows(table.name, input.ids, input.weights, options);
  return to_key_rows(table.name, table.dynamic->key, input.ids, input.weights, options);
}

void DistributedEmbeddingLayer::look_up_sparsecore(const std::vector<Input>& inputs,
                                                   std::vector<Tensor>& out) const {
  std::vector<IdRows> rows;
  for (size_t f = 0; f < features_.size(); ++f) {
    const Feature& feature = features_[f];
    const Table& table = tables_[feature.table];
    if (!table.sparsecore) continue;
    rows.push_back(at_feature(feature.path, [&] { return rows_of(feature, inputs[f]); }));
  }
  std::vector<Tensor> found = sparse_core_->look_up(std::move(rows));
  auto next = found.begin();
  for (size_t f = 0; f < features_.size(); ++f) {
    if (tables_[features_[f].table].sparsecore) out[f] = std::move(*next++);
  }
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
    if (features > 0) place += str("_", features);
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

std::vector<std::string> DistributedEmbeddingLayer::training_notices() const {
  std::vector<std::string> out;
  for (const auto& [table, seen] : id_statistics()) {
    if (seen.dropped_ids == 0) continue;
    out.push_back(str("DistributedEmbedding ", name(), ": ", seen.dropped_ids, " ids of table '",
                      table, "' were dropped; to keep them, raise max_ids_per_partition to ",
                      seen.max_ids_per_partition, " and max_unique_ids_per_partition to ",
                      seen.max_unique_ids_per_partition));
  }
  for (const auto& [table, rows] : dynamic_tables()) {
    out.push_back(dynamic_notice(str("DistributedEmbedding ", name(), ": table '", table, "'"),
                                 rows.statistics()));
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
  // keras_rs does not have this key, so it is only written if set.
  if (options_.id_limit_policy != IdLimitPolicy::kUnlimited) {
    out.set("id_limit_policy", encode(options_.id_limit_policy));
  }
  return out;
}

std::shared_ptr<DistributedEmbeddingLayer> DistributedEmbeddingLayer::from_config(
    const Config& config) {
  config_internal::reject_unknown_keys(config,
                                       {"name", "trainable", "dtype", "feature_configs", "tables",
                                        "table_stacking", "update_stats", "id_limit_policy"},
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
  return std::make_shared<DistributedEmbeddingLayer>(std::move(options));
}

KEEL_REGISTER(Layer, DistributedEmbeddingLayer, .package = "keras_rs", .call = "inputs, training")

}  // namespace keel
