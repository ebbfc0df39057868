#include <keel/layers/embedding/distributed/distributed_embedding.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <map>
#include <set>

#include <keel/autodiff/tape.h>
#include <keel/distribute/strategy.h>
#include <keel/layers/embedding/distributed/internal/feature_configs.h>
#include <keel/layers/embedding/distributed/internal/layer_parts.h>
#include <keel/layers/embedding/distributed/internal/sparse_core.h>
#include <keel/layers/embedding/internal/id_rows_plan.h>
#include <keel/layers/embedding/tables/internal/id_rows.h>
#include <keel/layers/embedding/tables/internal/lookup_counter.h>
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
    return absl::StrCat("DistributedEmbedding: feature '", path, "': ", error.what());
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

struct DistributedEmbeddingLayer::Input {
  TensorLike ids;
  std::optional<TensorLike> weights = {};
};

DistributedEmbeddingLayer::DistributedEmbeddingLayer(Options options)
    : Layer(kClassName, options), options_(std::move(options)) {
  collect_features();
  make_tables();
  if (options_.collect_statistics) {
    lookup_counter_ = std::make_unique<LookupCounter>(tables_.size());
  }
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
    std::vector<IdRows> on_sparsecore;  // of the features on sparse cores, without dropped ids
    if (sparse_core_ != nullptr) on_sparsecore = look_up_sparsecore(of_features, out);
    if (lookup_counter_ != nullptr) count_lookups(of_features, on_sparsecore);
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
  if (sparse_core_ != nullptr || dtype() != DType::kFloat32) return {};
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
        .caller = absl::StrCat("DistributedEmbedding: feature '", feature.path, "'"),
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

std::vector<IdRows> DistributedEmbeddingLayer::look_up_sparsecore(const std::vector<Input>& inputs,
                                                                  std::vector<Tensor>& out) const {
  std::vector<IdRows> rows;
  for (size_t f = 0; f < features_.size(); ++f) {
    const Feature& feature = features_[f];
    const Table& table = tables_[feature.table];
    if (!table.sparsecore) continue;
    rows.push_back(at_feature(feature.path, [&] { return rows_of(feature, inputs[f]); }));
  }
  std::vector<Tensor> found = sparse_core_->look_up(rows);
  auto next = found.begin();
  for (size_t f = 0; f < features_.size(); ++f) {
    if (tables_[features_[f].table].sparsecore) out[f] = std::move(*next++);
  }
  return rows;
}

// Counts a lookup that has succeeded.
void DistributedEmbeddingLayer::count_lookups(const std::vector<Input>& inputs,
                                              const std::vector<IdRows>& on_sparsecore) const {
  std::vector<LookupCounter::Part> parts;
  auto next = on_sparsecore.begin();
  for (size_t f = 0; f < features_.size(); ++f) {
    const Feature& feature = features_[f];
    const IdRows rows =
        tables_[feature.table].sparsecore ? *next++ : rows_of(feature, {.ids = inputs[f].ids});
    parts.push_back(
        {.table = static_cast<size_t>(feature.table), .ids = rows.ids, .samples = rows.rows()});
  }
  lookup_counter_->add(parts);
}

KEEL_REGISTER(Layer, DistributedEmbeddingLayer, .package = "keras_rs", .call = "inputs, training")

}  // namespace keel
