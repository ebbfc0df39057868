#include <keel/savedmodel/keras/internal/keras_lookups.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <cmath>
#include <optional>

#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/embedding/tables/feature_lookups.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/preprocessing/lookup.h>
#include <keel/layers/registry.h>

namespace keel {

// One feature of a TPUEmbedding or DistributedEmbedding in the graph, or one call of an
// EmbedReduce.
struct KerasLookups::Feature {
  struct TableCopy {
    std::string name;
    Tensor values;
  };

  const Layer& layer;
  std::string path;        // of the feature in its layer
  std::string table_name;  // of a table with dynamic ids
  const void* table;       // identifies the table among those of the layer
  std::string combiner;
  std::optional<DynamicVocabulary> dynamic = {};    // of the table
  std::function<TableCopy()> read_table = nullptr;  // not with `dynamic`
  int64_t sequence_length = 0;                      // > 0: ids are not pooled
  int64_t max_row_length = kUnknown;                // pooled ids beyond it do not count
  bool ignores_invalid_ids = false;
  TensorLike ids;
  std::optional<TensorLike> weights = {};
  Shape output;  // shape of the feature's output in this call
};

namespace {

LayerHandle<Layer> make(const char* class_name, Config config) {
  return layers::deserialize(
      Config::dict({{"class_name", class_name}, {"config", std::move(config)}}));
}

std::string where(const Layer& layer, const std::string& path) {
  if (dynamic_cast<const EmbedReduceLayer*>(&layer) != nullptr) {
    return absl::StrCat("save_model for Keras: EmbedReduce '", layer.name(), "': ");
  }
  return absl::StrCat("save_model for Keras: ", layer.class_name(), " '", layer.name(),
                      "', feature '", path, "': ");
}

template <class... Args>
[[noreturn]] void refuse(const auto& feature, const Args&... why) {
  throw ValueError(where(feature.layer, feature.path), why...);
}

// Throws ValueError if ids that are left out change the divisor of a pooled feature.
void check_left_out(const auto& feature) {
  if (!feature.dynamic || feature.dynamic->not_admitted.kind != NotAdmitted::Kind::kIgnore ||
      feature.combiner == "sum") {
    return;
  }
  refuse(feature, "NotAdmitted::ignore() leaves ids out of the divisor of combiner ",
         feature.combiner, ", which Keras cannot express; use zero()");
}

// Returns the shape as the argument of a Reshape, which can find one unknown dimension.
Config target_shape(const auto& feature, const Shape& shape) {
  Config::List out;
  for (const int64_t dim : shape.dims()) out.emplace_back(dim == kUnknown ? -1 : dim);
  if (std::ranges::count(out, Config(-1)) > 1) {
    refuse(feature, "its shape ", feature.output, " is not known");
  }
  return out;
}

// Returns the shape of the dense inputs that replace ragged or sparse ones.
Shape padded_shape(const auto& feature) {
  const TensorSpec spec = feature.ids.spec();
  if (spec.shape.rank() != 2) {
    refuse(feature, "ids of shape ", spec.shape, " are not supported; they need rank 2");
  }
  if (feature.sequence_length > 0) return {spec.shape[0], feature.sequence_length};
  const int64_t length = spec.layout == Layout::kRagged ? kUnknown : spec.shape[1];
  if (length == kUnknown) return {spec.shape[0], feature.max_row_length};
  if (feature.max_row_length == kUnknown) return {spec.shape[0], length};
  return {spec.shape[0], std::min(length, feature.max_row_length)};
}

// Returns a lookup of keys whose token for other ids is no key.
template <class Key>
LayerHandle<Layer> lookup_layer(const std::string& name, const Tensor& keys, int64_t others) {
  LookupOptions<Key> options = {.num_oov_indices = others, .name = name};
  const auto values = keys.data<Key>();
  const auto is_key = [&] { return std::ranges::binary_search(values, options.oov_token); };
  if constexpr (std::is_same_v<Key, int64_t>) {
    while (is_key()) --options.oov_token;
  } else {
    while (is_key()) options.oov_token += "_";
  }
  options.vocabulary = std::vector<Key>(values.begin(), values.end());
  return LayerHandle<IndexLookupLayer<Key>>(std::move(options));
}

}  // namespace

bool KerasLookups::replaces(const Operation& operation) {
  if (dynamic_cast<const TPUEmbeddingLayer*>(&operation) != nullptr ||
      dynamic_cast<const FeatureLookups*>(&operation) != nullptr) {
    return true;
  }
  const auto* const embedding = dynamic_cast<const EmbeddingLayer*>(&operation);
  const auto* const reduce = dynamic_cast<const EmbedReduceLayer*>(&operation);
  return (embedding != nullptr && !embedding->dynamic_tables().empty()) ||
         (reduce != nullptr && !reduce->dynamic_tables().empty());
}

void KerasLookups::add(const GraphNode& node) {
  const Operation* const layer = node.operation.get();
  if (const auto* const tpu = dynamic_cast<const TPUEmbeddingLayer*>(layer)) {
    add_tpu_embedding(node, *tpu);
  } else if (const auto* const tables = dynamic_cast<const FeatureLookups*>(layer)) {
    add_feature_lookups(node, dynamic_cast<const Layer&>(*layer), *tables);
  } else if (const auto* const reduce = dynamic_cast<const EmbedReduceLayer*>(layer)) {
    add_reduce(node, *reduce);
  } else {
    add_embedding(node, dynamic_cast<const EmbeddingLayer&>(*layer));
  }
}

TensorLike KerasLookups::new_input(const Shape& shape, DType dtype, const std::string& name) {
  return LayerHandle<InputLayer>({.batch_shape = shape, .dtype = dtype, .name = name})
      ->make_output();
}

Tensors KerasLookups::replaced(const Tensors& tensors) const {
  return results_.replaced(tensors, [](const TensorLike& t) {
    const auto& layer = dynamic_cast<const Layer&>(*t.values().producer()->operation);
    return absl::StrCat(
        "save_model for Keras: the input '", layer.name(),
        "' is ragged or sparse, which Keras does not support, and is not a feature of a "
        "TPUEmbedding or DistributedEmbedding");
  });
}

void KerasLookups::add_tpu_embedding(const GraphNode& node, const TPUEmbeddingLayer& layer) {
  // With weights, the inputs are the pair of both structures.
  const bool weighted = flatten(node.inputs).size() == 2 * flatten(layer.feature_config()).size();
  const std::vector<TensorLike> ids = flatten(weighted ? node.inputs[0] : node.inputs);
  const std::vector<TensorLike> weights =
      weighted ? flatten(node.inputs[1]) : std::vector<TensorLike>();
  const std::vector<FeatureConfig> configs = flatten(layer.feature_config());
  const std::vector<std::string> paths = flatten_paths(layer.feature_config());
  const std::vector<TensorSpec> outputs = flatten(node.output_specs);
  std::vector<Table> tables;  // in order of first use
  std::vector<TensorLike> found;
  for (size_t i = 0; i < ids.size(); ++i) {
    const Table& table = configs[i].table;
    auto position = std::ranges::find(tables, table) - tables.begin();
    if (position == std::ssize(tables)) tables.push_back(table);
    Feature feature{.layer = layer,
                    .path = paths[i],
                    .table_name = table->name,
                    .table = table.get(),
                    .combiner = table->combiner,
                    .dynamic = table->dynamic,
                    .read_table =
                        [&layer, position] {
                          const auto [own, values] = layer.embedding_tables()[position];
                          return Feature::TableCopy{own->name, values};
                        },
                    .sequence_length = configs[i].max_sequence_length,
                    .ignores_invalid_ids = configs[i].id_policy.kind == IdPolicy::Kind::kIgnore,
                    .ids = ids[i],
                    .output = outputs[i].shape};
    // An empty leaf means that all weights are 1.
    if (weighted && weights[i].is_symbolic()) feature.weights = weights[i];
    found.emplace_back(look_up(feature));
  }
  results_.add(node, pack_sequence_as(layer.feature_config(), found));
}

void KerasLookups::add_feature_lookups(const GraphNode& node, const Layer& layer,
                                       const FeatureLookups& tables) {
  const std::vector<TensorSpec> outputs = flatten(node.output_specs);
  std::vector<TensorLike> found;
  for (const FeatureLookup& lookup : tables.lookups(node.inputs)) {
    const TensorSpec& output = outputs[found.size()];
    Feature feature{.layer = layer,
                    .path = lookup.path,
                    .table_name = lookup.table_name,
                    .table = lookup.table,
                    .combiner = lookup.combiner,
                    .dynamic = lookup.dynamic,
                    .read_table =
                        [&layer, name = lookup.table_name] {
                          const std::string entry = name + "/embeddings";
                          for (const StateEntry& state : layer.state_entries()) {
                            if (state.name == entry) return Feature::TableCopy{name, state.get()};
                          }
                          throw RuntimeError(entry, ": no such table");
                        },
                    .max_row_length = lookup.max_row_length,
                    .ids = lookup.ids,
                    .weights = lookup.weights,
                    .output = output.shape};
    if (output.dtype != DType::kFloat32) {
      refuse(feature, "its table is ", output.dtype, "; only float32 is supported");
    }
    found.emplace_back(look_up_and_reduce(feature));
  }
  results_.add(node, tables.pack_features(found));
}

// Replaces an EmbedReduce like a feature of a DistributedEmbedding.
void KerasLookups::add_reduce(const GraphNode& node, const EmbedReduceLayer& layer) {
  const bool weighted = !node.inputs.is_leaf();
  const NamedDynamicTable rows = dynamic_tables_of(layer)[0];
  Feature feature{.layer = layer,
                  .path = "ids",
                  .table_name = rows.name,
                  .table = &layer,
                  .combiner = layer.options().combiner,
                  .dynamic = rows.table.options(),
                  .ids = weighted ? node.inputs[0].leaf() : node.inputs.leaf(),
                  .output = flatten(node.output_specs)[0].shape};
  if (weighted) feature.weights = node.inputs[1].leaf();
  results_.add(node, Tensors(look_up_and_reduce(feature)));
}

void KerasLookups::add_embedding(const GraphNode& node, const EmbeddingLayer& layer) {
  const Tensor ids = replaced(node.inputs).tensor();
  const auto tables = dynamic_tables_of(layer);
  const std::string caller = absl::StrCat("save_model for Keras: Embedding '", layer.name(), "': ");
  results_.add(node, Tensors(looked_up(tables[0], layer, caller, ids)));
}

// Looks up a feature of a TPUEmbedding, where rows of dense ids are not pooled.
Tensor KerasLookups::look_up(const Feature& feature) {
  if (feature.ids.layout() == Layout::kDense) return look_up_dense(feature);
  if (feature.sequence_length == 0) check_left_out(feature);
  return pool(feature);
}

// Looks up ids in the form of EmbedReduce, which pools ids of every layout.
Tensor KerasLookups::look_up_and_reduce(const Feature& feature) {
  if (feature.weights && feature.weights->layout() != feature.ids.layout()) {
    refuse(feature, "its weights and ids have different layouts");
  }
  const bool is_dense = feature.ids.layout() == Layout::kDense;
  if (is_dense && feature.weights) {
    refuse(feature, "it has weights of dense ids; pass ragged or sparse ids");
  }
  const bool is_pooled = feature.ids.spec().shape.rank() == 2;
  if (is_pooled) check_left_out(feature);
  if (!is_dense) return pool(feature);
  return is_pooled ? pool_dense(feature) : look_up_dense(feature);
}

Tensor KerasLookups::look_up_dense(const Feature& feature) {
  const Tensor ids = replaced(Tensors(feature.ids)).tensor();
  Tensor rows = reshaped(feature, rows_of(feature, ids));
  if (!feature.ignores_invalid_ids) return rows;
  const Tensor mask = presence_of(feature, ids.shape());
  return multiplied(feature, rows, mask);
}

// Gives the result the shape of the feature's output.
Tensor KerasLookups::reshaped(const Feature& feature, const Tensor& x) {
  if (x.rank() == feature.output.rank()) return x;
  const Shape rest = feature.output.without(0);
  return make("Reshape", Config::dict({{"name", unique(feature, "reshape")},
                                       {"target_shape", target_shape(feature, rest)}}))(x);
}

// Multiplies each row of a result by its weight.
Tensor KerasLookups::multiplied(const Feature& feature, const Tensor& rows, const Tensor& weights) {
  const Shape shape = rows.shape().without(0).with(rows.rank() - 2, 1);
  const Tensor factors =
      make("Reshape", Config::dict({{"name", unique(feature, "factors")},
                                    {"target_shape", target_shape(feature, shape)}}))(weights);
  return make("Multiply",
              Config::dict({{"name", unique(feature, "masked")}}))(Tensors::list({rows, factors}))
      .tensor();
}

// Looks up the rows of a ragged or sparse feature, and pools them unless it is a sequence.
Tensor KerasLookups::pool(const Feature& feature) {
  if (feature.combiner == "max") {
    refuse(feature, "Keras has no layers for the combiner max of ragged and sparse ids");
  }
  const Shape shape = padded_shape(feature);
  const Tensor ids = dense_input(feature, feature.ids, shape, feature.ids.spec().dtype);
  const Tensor rows = rows_of(feature, ids);
  const Tensor weights = feature.weights
                             ? dense_input(feature, *feature.weights, shape, DType::kFloat32)
                             : presence_of(feature, shape);
  if (feature.sequence_length > 0) {
    return reshaped(feature, multiplied(feature, rows, weights));
  }
  if (feature.weights && feature.combiner == "mean") {
    return reshaped(feature, weighted_mean(feature, rows, weights));
  }
  return reshaped(feature, dot(feature, "pool", pooling(feature, weights), rows));
}

Tensor KerasLookups::dot(const Feature& feature, const char* what, const Tensor& x,
                         const Tensor& y) {
  return make("Dot", Config::dict({{"name", unique(feature, what)},
                                   {"axes", Config::list({1, 1})}}))(Tensors::list({x, y}))
      .tensor();
}

// Returns the dense input that replaces a ragged or sparse one.
Tensor KerasLookups::dense_input(const Feature& feature, const TensorLike& tensor,
                                 const Shape& shape, DType dtype) {
  if (const TensorLike* const found = results_.find(tensor)) {
    if (found->spec().shape == shape) return found->tensor();
    refuse(feature, "another feature needs the same input in the shape ", found->spec().shape,
           "; use a second input");
  }
  const auto* input = dynamic_cast<const InputLayer*>(tensor.values().producer()->operation.get());
  if (input == nullptr) {
    refuse(feature, "its ids or weights are ragged or sparse and no input of the model");
  }
  const TensorLike made = new_input(shape, dtype, input->name());
  results_.add(tensor, made);
  return made.tensor();
}

// Returns the new input that tells which ids are present.
Tensor KerasLookups::presence_of(const Feature& feature, const Shape& shape) {
  const auto& input = dynamic_cast<const Layer&>(*feature.ids.values().producer()->operation);
  const auto [it, is_new] = presence_.try_emplace(input.name());
  if (is_new) it->second = new_input(shape, DType::kFloat32, input.name() + "_weights").tensor();
  return it->second;
}

// Returns the factors of the looked-up rows, [batch, length], whose products are summed.
Tensor KerasLookups::pooling(const Feature& feature, const Tensor& weights) {
  const std::string& combiner = feature.combiner;
  if (combiner == "sum") return weights;
  if (combiner == "sqrtn") {
    return make("UnitNormalization",
                Config::dict({{"name", unique(feature, "unit")}, {"axis", -1}}))(weights);
  }
  // Softmax gives equal shares to the positions with ids and 0 to the others.
  constexpr double kFar = 1e9;
  const Tensor scores = rescaled(feature, "scores", weights, kFar, -kFar);
  const Tensor shares =
      make("Softmax", Config::dict({{"name", unique(feature, "shares")}}))(scores);
  return make("Multiply",
              Config::dict({{"name", unique(feature, "mean")}}))(Tensors::list({shares, weights}))
      .tensor();
}

Tensor KerasLookups::rescaled(const Feature& feature, const char* what, const Tensor& x,
                              double scale, double offset) {
  return make(
      "Rescaling",
      Config::dict({{"name", unique(feature, what)}, {"scale", scale}, {"offset", offset}}))(x);
}

// Returns the weighted sum z of the rows divided by the sum s of the weights. Keras has no layer
// that divides. The vector (e z, s) with a small e has the length |s| up to rounding, so that
// UnitNormalization makes it e z / |s| and the sign of s.
Tensor KerasLookups::weighted_mean(const Feature& feature, const Tensor& rows,
                                   const Tensor& weights) {
  constexpr double kSmall = 0x1p-20;
  const int64_t dim = rows.shape()[rows.rank() - 1];
  const Tensor ones = rescaled(feature, "ones", weights, 0, 1);
  const Tensor total = dot(feature, "total", weights, ones);
  const Tensor sum = rescaled(feature, "small", dot(feature, "sum", weights, rows), kSmall, 0);
  const Tensor both = make("Concatenate", Config::dict({{"name", unique(feature, "both")},
                                                        {"axis", -1}}))(Tensors::list({sum, total}))
                          .tensor();
  const Tensor unit = make("UnitNormalization",
                           Config::dict({{"name", unique(feature, "unit")}, {"axis", -1}}))(both);
  // Drops s and multiplies by 1 / e.
  const LayerHandle<Layer> inverse = make("Dense", Config::dict({{"name", unique(feature, "mean")},
                                                                 {"units", dim},
                                                                 {"use_bias", false},
                                                                 {"trainable", false}}));
  const Tensor mean = inverse(unit);
  std::vector<float> kernel((dim + 1) * dim);
  for (int64_t i = 0; i < dim; ++i) kernel[i * dim + i] = static_cast<float>(1 / kSmall);
  inverse->weights()[0].assign(Tensor::from<float>(kernel, {dim + 1, dim}));
  const Tensor sign = make("UnitNormalization",
                           Config::dict({{"name", unique(feature, "sign")}, {"axis", -1}}))(total);
  return make("Multiply",
              Config::dict({{"name", unique(feature, "signed")}}))(Tensors::list({mean, sign}))
      .tensor();
}

Tensor KerasLookups::rows_of(const Feature& feature, const Tensor& ids) {
  if (!feature.dynamic) return table_of(feature, ids)(ids);
  for (const NamedDynamicTable& table : dynamic_tables_of(feature.layer)) {
    if (table.name != feature.table_name) continue;
    return looked_up(table, feature.layer, where(feature.layer, feature.path), ids);
  }
  refuse(feature, "the layer has no table '", feature.table_name, "'");
}

// Pools the rows of dense ids [batch, n], all of which count. Keras has layers for means.
Tensor KerasLookups::pool_dense(const Feature& feature) {
  const Tensor ids = replaced(Tensors(feature.ids)).tensor();
  const int64_t n = ids.shape()[1];
  if (n == kUnknown) refuse(feature, "the number of its ids per row is not known");
  Tensor mean = make("GlobalAveragePooling1D",
                     Config::dict({{"name", unique(feature, "mean")}}))(rows_of(feature, ids));
  const std::string& combiner = feature.combiner;
  if (combiner == "mean") return mean;
  const auto count = static_cast<double>(n);
  return rescaled(feature, "sum", mean, combiner == "sum" ? count : std::sqrt(count), 0);
}

// Looks up ids in a copy of a table. All features of the table share its layers.
Tensor KerasLookups::looked_up(const NamedDynamicTable& table, const Layer& layer,
                               const std::string& where, const Tensor& ids) {
  const std::pair<const Layer*, std::string> key(&layer, table.name);
  auto it = dynamic_tables_.find(key);
  if (it == dynamic_tables_.end()) {
    it = dynamic_tables_.emplace(key, dynamic_layers(table, where)).first;
  }
  return it->second.embedding(it->second.lookup(ids));
}

KerasLookups::DynamicLayers KerasLookups::dynamic_layers(const NamedDynamicTable& table,
                                                         const std::string& where) {
  const DynamicVocabulary& options = table.table.options();
  const DynamicTableState state =
      frequent_rows(table.table, min_count_.of(table.layer, table.name));
  const int64_t n = state.keys.size(), dim = table.table.dim();
  if (n == 0) throw ValueError(where, "table '", table.name, "' is empty; train it first");
  const bool strings = options.key == KeyType::kString;
  const int64_t others = std::max<int64_t>(1, options.not_admitted.fallback_rows());
  if (strings && others > 1) {
    throw ValueError(where, "table '", table.name, "' has string ids and ", others,
                     " fallback rows, which Keras selects by another hash; use hashed(1) or "
                     "default_row()");
  }
  const std::string name = table.layer + "_" + table.name;
  const LayerHandle<Layer> lookup =
      strings ? lookup_layer<std::string>(unique_(name + "_lookup"), state.keys, others)
              : lookup_layer<int64_t>(unique_(name + "_lookup"), state.keys, others);
  const layers::Embedding embedding(
      {.input_dim = others + n, .output_dim = dim, .name = unique_(name)});
  embedding->build(Specs(TensorSpec{.shape = {kUnknown}, .dtype = DType::kInt64}));
  Tensor rows = Tensor::zeros({others + n, dim});
  const auto to = rows.mutable_data<float>().begin();
  std::ranges::copy(state.fallback.data<float>(), to);
  std::ranges::copy(state.rows.data<float>(), to + others * dim);
  embedding->embeddings().assign(rows);
  return {.lookup = lookup, .embedding = embedding};
}

// Returns the layer that holds a copy of the feature's table.
LayerHandle<Layer> KerasLookups::table_of(const Feature& feature, const Tensor& ids) {
  const std::pair<const Layer*, const void*> key(&feature.layer, feature.table);
  if (const auto it = tables_.find(key); it != tables_.end()) return it->second;
  const auto [name, values] = feature.read_table();
  const layers::Embedding made({.input_dim = values.dim(0),
                                .output_dim = values.dim(1),
                                .name = unique_(feature.layer.name() + "_" + name),
                                .trainable = feature.layer.trainable()});
  made->build(Specs(ids.spec()));
  made->embeddings().assign(values);
  tables_.emplace(key, made);
  return made;
}

std::string KerasLookups::unique(const Feature& feature, const char* what) {
  std::string name = absl::StrCat(feature.layer.name(), "_", feature.path, "_", what);
  std::ranges::replace(name, '/', '_');
  return unique_(std::move(name));
}

}  // namespace keel
