#include <keel/savedmodel/keras/for_keras.h>

#include <algorithm>
#include <cmath>
#include <map>

#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/distributed/distributed_embedding.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/internal/node_results.h>
#include <keel/layers/preprocessing/lookup.h>
#include <keel/layers/registry.h>
#include <keel/savedmodel/keras/dialect/keras_interactions.h>
#include <keel/savedmodel/keras/internal/dynamic_tables.h>
#include <keel/savedmodel/keras/internal/model_weights.h>

namespace keel {
namespace {

bool is_tpu_embedding(const Operation& operation) {
  return dynamic_cast<const TPUEmbeddingLayer*>(&operation) != nullptr;
}

LayerHandle<Layer> make(const char* class_name, Config config) {
  return layers::deserialize(
      Config::dict({{"class_name", class_name}, {"config", std::move(config)}}));
}

class Rewriter {
 public:
  Rewriter(const FunctionalModel& model, const MinCount& min_count)
      : model_(model), min_count_(min_count) {}

  ModelHandle rewrite() {
    for (const auto& node : model_.nodes()) add(*node);
    for (const TensorLike& input : flatten(model_.inputs())) {
      // An input that no output depends on is not a node of the graph.
      if (results_.find(input) == nullptr) add(*input.values().producer());
    }
    return Functional({.inputs = inputs(),
                       .outputs = replaced(model_.outputs()),
                       .name = model_.name(),
                       .trainable = model_.trainable()});
  }

 private:
  void add(const GraphNode& node) {
    if (const auto* input = dynamic_cast<const InputLayer*>(node.operation.get())) {
      return add_input(node, *input);
    }
    if (is_tpu_embedding(*node.operation)) return add_embedding(node);
    const auto* layer = dynamic_cast<const Layer*>(node.operation.get());
    if (const auto* const embedding = dynamic_cast<const EmbeddingLayer*>(layer);
        embedding != nullptr && !embedding->dynamic_tables().empty()) {
      return add_dynamic_embedding(node, *embedding);
    }
    if (const auto* const reduce = dynamic_cast<const EmbedReduceLayer*>(layer);
        reduce != nullptr && !reduce->dynamic_tables().empty()) {
      return add_dynamic_reduce(node, *reduce);
    }
    if (layer != nullptr && has_keras_form(*layer)) {
      return results_.add(node, Tensors(interactions_.rewrite(*layer, replaced(node.inputs))));
    }
    const Layer* const unknown = layer == nullptr ? nullptr : unknown_to_keras(*layer);
    if (const auto* const inner = dynamic_cast<const FunctionalModel*>(layer);
        inner != nullptr && (unknown != nullptr || has_keras_form_inside(*inner))) {
      const ModelHandle made = rewritten(*inner);
      return results_.add(node, made.shared()->replay(replaced(node.inputs), node.options));
    }
    if (unknown != nullptr) {
      throw ValueError("save_model for Keras: ", unknown->class_name(), " '", unknown->name(),
                       unknown == layer ? "'" : str("' in '", layer->name(), "'"),
                       " has no equivalent layers in Keras; remove it, or save without for_keras");
    }
    results_.add(node, node.operation->replay(replaced(node.inputs), node.options));
  }

  // Returns the rewritten form of a nested model, which all calls of the model share.
  ModelHandle rewritten(const FunctionalModel& inner) {
    const auto it = models_.find(&inner);
    if (it != models_.end()) return it->second;
    for (const TensorLike& input : flatten(inner.inputs())) {
      if (input.layout() == Layout::kDense) continue;
      throw ValueError(
          "save_model for Keras: '", inner.name(), "' in '", model_.name(),
          "' has ragged or sparse inputs; only the outermost model may have such inputs");
    }
    return models_.emplace(&inner, Rewriter(inner, min_count_).rewrite()).first->second;
  }

  static TensorLike new_input(const Shape& shape, DType dtype, const std::string& name) {
    return LayerHandle<InputLayer>({.batch_shape = shape, .dtype = dtype, .name = name})
        ->make_output();
  }

  // Replaces a dense input. Sparse inputs are replaced when their feature is found.
  void add_input(const GraphNode& node, const InputLayer& input) {
    const TensorSpec spec = input.spec();
    if (spec.layout == Layout::kDense) {
      results_.add(node, Tensors(new_input(spec.shape, spec.dtype, input.name())));
    }
  }

  Tensors replaced(const Tensors& tensors) const {
    return results_.replaced(tensors, [](const TensorLike& t) {
      const auto& layer = static_cast<const Layer&>(*t.values().producer()->operation);
      return str("save_model for Keras: the input '", layer.name(),
                 "' is ragged or sparse, which Keras does not support, and is not a feature of a "
                 "TPUEmbedding");
    });
  }

  // One feature of a TPUEmbedding in the graph, or one call of an EmbedReduce with dynamic ids.
  struct Feature {
    const Layer& layer;
    std::string path;
    FeatureConfig config;
    TensorLike ids;
    std::optional<TensorLike> weights = {};
    Shape output;  // shape of the feature's output in this call
  };

  template <class... Args>
  [[noreturn]] static void refuse(const Feature& feature, const Args&... why) {
    throw ValueError(where(feature), why...);
  }

  static std::string where(const Feature& feature) {
    if (dynamic_cast<const EmbedReduceLayer*>(&feature.layer) != nullptr) {
      return str("save_model for Keras: EmbedReduce '", feature.layer.name(), "': ");
    }
    return str("save_model for Keras: TPUEmbedding '", feature.layer.name(), "', feature '",
               feature.path, "': ");
  }

  void add_embedding(const GraphNode& node) {
    const auto& layer = static_cast<const TPUEmbeddingLayer&>(*node.operation);
    // With weights, the inputs are the pair of both structures.
    const bool weighted = flatten(node.inputs).size() == 2 * flatten(layer.feature_config()).size();
    const Tensors& features = weighted ? node.inputs[0] : node.inputs;
    const std::vector<TensorLike> ids = flatten(features);
    const std::vector<TensorLike> weights =
        weighted ? flatten(node.inputs[1]) : std::vector<TensorLike>();
    const std::vector<FeatureConfig> configs = flatten(layer.feature_config());
    const std::vector<std::string> paths = flatten_paths(layer.feature_config());
    const std::vector<TensorSpec> outputs = flatten(node.output_specs);
    std::vector<TensorLike> found;
    for (size_t i = 0; i < ids.size(); ++i) {
      Feature feature{.layer = layer,
                      .path = paths[i],
                      .config = configs[i],
                      .ids = ids[i],
                      .output = outputs[i].shape};
      // An empty leaf means that all weights are 1.
      if (weighted && weights[i].is_symbolic()) feature.weights = weights[i];
      found.emplace_back(look_up(feature));
    }
    results_.add(node, pack_sequence_as(layer.feature_config(), found));
  }

  Tensor look_up(const Feature& feature) {
    const bool is_pooled =
        feature.ids.layout() != Layout::kDense && feature.config.max_sequence_length == 0;
    if (is_pooled) check_left_out(feature);
    return feature.ids.layout() == Layout::kDense ? look_up_dense(feature) : pool(feature);
  }

  // Throws ValueError if ids that are left out change the divisor of a pooled feature.
  static void check_left_out(const Feature& feature) {
    const auto& dynamic = feature.config.table->dynamic;
    if (!dynamic || dynamic->not_admitted.kind != NotAdmitted::Kind::kIgnore ||
        feature.config.table->combiner == "sum") {
      return;
    }
    refuse(feature, "NotAdmitted::ignore() leaves ids out of the divisor of combiner ",
           feature.config.table->combiner, ", which Keras cannot express; use zero()");
  }

  Tensor look_up_dense(const Feature& feature) {
    const Tensor ids = replaced(Tensors(feature.ids)).tensor();
    Tensor rows = reshaped(feature, rows_of(feature, ids));
    if (feature.config.id_policy.kind != IdPolicy::Kind::kIgnore) return rows;
    const Tensor mask = presence_of(feature, ids.shape());
    return multiplied(feature, rows, mask);
  }

  // Gives the result the shape of the feature's output.
  Tensor reshaped(const Feature& feature, const Tensor& x) {
    if (x.rank() == feature.output.rank()) return x;
    const Shape rest = feature.output.without(0);
    return make("Reshape", Config::dict({{"name", unique(feature, "reshape")},
                                         {"target_shape", target_shape(feature, rest)}}))(x);
  }

  // Returns the shape as the argument of a Reshape, which can find one unknown dimension.
  static Config target_shape(const Feature& feature, const Shape& shape) {
    Config::List out;
    for (const int64_t dim : shape.dims()) out.emplace_back(dim == kUnknown ? -1 : dim);
    if (std::ranges::count(out, Config(-1)) > 1) {
      refuse(feature, "its shape ", feature.output, " is not known");
    }
    return out;
  }

  // Multiplies each row of a result by its weight.
  Tensor multiplied(const Feature& feature, const Tensor& rows, const Tensor& weights) {
    const Shape shape = rows.shape().without(0).with(rows.rank() - 2, 1);
    const Tensor factors =
        make("Reshape", Config::dict({{"name", unique(feature, "factors")},
                                      {"target_shape", target_shape(feature, shape)}}))(weights);
    return make("Multiply",
                Config::dict({{"name", unique(feature, "masked")}}))(Tensors::list({rows, factors}))
        .tensor();
  }

  // Returns the shape of the dense inputs that replace ragged or sparse ones.
  static Shape padded_shape(const Feature& feature) {
    const TensorSpec spec = feature.ids.spec();
    if (spec.shape.rank() != 2) {
      refuse(feature, "ids of shape ", spec.shape, " are not supported; they need rank 2");
    }
    const int64_t longest = feature.config.max_sequence_length;
    const bool any = spec.layout == Layout::kRagged;
    return {spec.shape[0], longest > 0 ? longest : any ? kUnknown : spec.shape[1]};
  }

  // Looks up the rows of a ragged or sparse feature, and pools them unless it is a sequence.
  Tensor pool(const Feature& feature) {
    if (feature.config.table->combiner == "max") {
      refuse(feature, "Keras has no layers for the combiner max of ragged and sparse ids");
    }
    const Shape shape = padded_shape(feature);
    const Tensor ids = dense_input(feature, feature.ids, shape, feature.ids.spec().dtype);
    const Tensor rows = rows_of(feature, ids);
    const Tensor weights = feature.weights
                               ? dense_input(feature, *feature.weights, shape, DType::kFloat32)
                               : presence_of(feature, shape);
    if (feature.config.max_sequence_length > 0) {
      return reshaped(feature, multiplied(feature, rows, weights));
    }
    if (feature.weights && feature.config.table->combiner == "mean") {
      return reshaped(feature, weighted_mean(feature, rows, weights));
    }
    return reshaped(feature, dot(feature, "pool", pooling(feature, weights), rows));
  }

  Tensor dot(const Feature& feature, const char* what, const Tensor& x, const Tensor& y) {
    return make("Dot", Config::dict({{"name", unique(feature, what)},
                                     {"axes", Config::list({1, 1})}}))(Tensors::list({x, y}))
        .tensor();
  }

  // Returns the dense input that replaces a ragged or sparse one.
  Tensor dense_input(const Feature& feature, const TensorLike& tensor, const Shape& shape,
                     DType dtype) {
    if (const TensorLike* const found = results_.find(tensor)) {
      if (found->spec().shape == shape) return found->tensor();
      refuse(feature, "another feature needs the same input in the shape ", found->spec().shape,
             "; use a second input");
    }
    const auto* input =
        dynamic_cast<const InputLayer*>(tensor.values().producer()->operation.get());
    if (input == nullptr) {
      refuse(feature, "its ids or weights are ragged or sparse and no input of the model");
    }
    const TensorLike made = new_input(shape, dtype, input->name());
    results_.add(tensor, made);
    return made.tensor();
  }

  // Returns the new input that tells which ids are present.
  Tensor presence_of(const Feature& feature, const Shape& shape) {
    const auto& input = static_cast<const Layer&>(*feature.ids.values().producer()->operation);
    const auto [it, is_new] = presence_.try_emplace(input.name());
    if (is_new) it->second = new_input(shape, DType::kFloat32, input.name() + "_weights").tensor();
    return it->second;
  }

  // Returns the factors of the looked-up rows, [batch, length], whose products are summed.
  Tensor pooling(const Feature& feature, const Tensor& weights) {
    const std::string& combiner = feature.config.table->combiner;
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

  Tensor rescaled(const Feature& feature, const char* what, const Tensor& x, double scale,
                  double offset) {
    return make(
        "Rescaling",
        Config::dict({{"name", unique(feature, what)}, {"scale", scale}, {"offset", offset}}))(x);
  }

  // Returns the weighted sum z of the rows divided by the sum s of the weights. Keras has no layer
  // that divides. The vector (e z, s) with a small e has the length |s| up to rounding, so that
  // UnitNormalization makes it e z / |s| and the sign of s.
  Tensor weighted_mean(const Feature& feature, const Tensor& rows, const Tensor& weights) {
    constexpr double kSmall = 0x1p-20;
    const int64_t dim = feature.config.table->dim;
    const Tensor ones = rescaled(feature, "ones", weights, 0, 1);
    const Tensor total = dot(feature, "total", weights, ones);
    const Tensor sum = rescaled(feature, "small", dot(feature, "sum", weights, rows), kSmall, 0);
    const Tensor both =
        make("Concatenate", Config::dict({{"name", unique(feature, "both")}, {"axis", -1}}))(
            Tensors::list({sum, total}))
            .tensor();
    const Tensor unit = make("UnitNormalization",
                             Config::dict({{"name", unique(feature, "unit")}, {"axis", -1}}))(both);
    // Drops s and multiplies by 1 / e.
    const LayerHandle<Layer> inverse =
        make("Dense", Config::dict({{"name", unique(feature, "mean")},
                                    {"units", dim},
                                    {"use_bias", false},
                                    {"trainable", false}}));
    const Tensor mean = inverse(unit);
    std::vector<float> kernel((dim + 1) * dim);
    for (int64_t i = 0; i < dim; ++i) kernel[i * dim + i] = static_cast<float>(1 / kSmall);
    inverse->weights()[0].assign(Tensor::from<float>(kernel, {dim + 1, dim}));
    const Tensor sign =
        make("UnitNormalization",
             Config::dict({{"name", unique(feature, "sign")}, {"axis", -1}}))(total);
    return make("Multiply",
                Config::dict({{"name", unique(feature, "signed")}}))(Tensors::list({mean, sign}))
        .tensor();
  }

  // The layers of one table with dynamic ids.
  struct DynamicLayers {
    LayerHandle<Layer> lookup, embedding;
  };

  Tensor rows_of(const Feature& feature, const Tensor& ids) {
    const Table& config = feature.config.table;
    if (!config->dynamic) return table(feature, ids)(ids);
    for (const NamedDynamicTable& table : dynamic_tables_of(feature.layer)) {
      if (table.name != config->name) continue;
      return looked_up(table, {&feature.layer, config->name}, where(feature), ids);
    }
    refuse(feature, "the layer has no table '", config->name, "'");
  }

  // Rewrites an EmbedReduce like a feature of a TPUEmbedding.
  void add_dynamic_reduce(const GraphNode& node, const EmbedReduceLayer& layer) {
    const bool weighted = !node.inputs.is_leaf();
    const NamedDynamicTable rows = dynamic_tables_of(layer)[0];
    const Table table = make_table({.dim = rows.table.dim(),
                                    .combiner = layer.options().combiner,
                                    .name = rows.name,
                                    .dynamic = rows.table.options()});
    Feature feature{.layer = layer,
                    .path = "ids",
                    .config = {.table = table},
                    .ids = weighted ? node.inputs[0].leaf() : node.inputs.leaf(),
                    .output = flatten(node.output_specs)[0].shape};
    if (weighted) feature.weights = node.inputs[1].leaf();
    if (feature.weights && feature.weights->layout() != feature.ids.layout()) {
      refuse(feature, "its weights and ids have different layouts");
    }
    const bool is_dense = feature.ids.layout() == Layout::kDense;
    if (is_dense && feature.weights) {
      refuse(feature, "it has weights of dense ids; pass ragged or sparse ids");
    }
    const bool is_pooled = feature.ids.spec().shape.rank() == 2;
    if (is_pooled) check_left_out(feature);
    results_.add(node, Tensors(!is_dense   ? pool(feature)
                               : is_pooled ? pool_dense(feature)
                                           : look_up_dense(feature)));
  }

  // Pools the rows of dense ids [batch, n], all of which count. Keras has layers for means.
  Tensor pool_dense(const Feature& feature) {
    const Tensor ids = replaced(Tensors(feature.ids)).tensor();
    const int64_t n = ids.shape()[1];
    if (n == kUnknown) refuse(feature, "the number of its ids per row is not known");
    Tensor mean = make("GlobalAveragePooling1D",
                       Config::dict({{"name", unique(feature, "mean")}}))(rows_of(feature, ids));
    const std::string& combiner = feature.config.table->combiner;
    if (combiner == "mean") return mean;
    const auto count = static_cast<double>(n);
    return rescaled(feature, "sum", mean, combiner == "sum" ? count : std::sqrt(count), 0);
  }

  void add_dynamic_embedding(const GraphNode& node, const EmbeddingLayer& layer) {
    const Tensor ids = replaced(node.inputs).tensor();
    const auto tables = dynamic_tables_of(layer);
    results_.add(node, Tensors(looked_up(
                           tables[0], {&layer, tables[0].name},
                           str("save_model for Keras: Embedding '", layer.name(), "': "), ids)));
  }

  // Looks up ids in a copy of a table. All features of the table share its layers.
  Tensor looked_up(const NamedDynamicTable& table, const std::pair<const Layer*, std::string>& key,
                   const std::string& where, const Tensor& ids) {
    auto it = dynamic_tables_.find(key);
    if (it == dynamic_tables_.end()) {
      it = dynamic_tables_.emplace(key, dynamic_layers(table, where)).first;
    }
    return it->second.embedding(it->second.lookup(ids));
  }

  DynamicLayers dynamic_layers(const NamedDynamicTable& table, const std::string& where) {
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
        strings ? lookup_layer<std::string>(unique(name + "_lookup"), state.keys, others)
                : lookup_layer<int64_t>(unique(name + "_lookup"), state.keys, others);
    const layers::Embedding embedding(
        {.input_dim = others + n, .output_dim = dim, .name = unique(name)});
    embedding->build(Specs(TensorSpec{.shape = {kUnknown}, .dtype = DType::kInt64}));
    Tensor rows = Tensor::zeros({others + n, dim});
    const auto to = rows.mutable_data<float>().begin();
    std::ranges::copy(state.fallback.data<float>(), to);
    std::ranges::copy(state.rows.data<float>(), to + others * dim);
    embedding->embeddings().assign(rows);
    return {.lookup = lookup, .embedding = embedding};
  }

  // Returns a lookup of keys whose token for other ids is no key.
  template <class Key>
  static LayerHandle<Layer> lookup_layer(const std::string& name, const Tensor& keys,
                                         int64_t others) {
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

  // Returns the layer that holds a copy of the feature's table.
  LayerHandle<Layer> table(const Feature& feature, const Tensor& ids) {
    const auto& layer = static_cast<const TPUEmbeddingLayer&>(feature.layer);
    std::vector<Table> tables;
    for (const FeatureConfig& config : flatten(layer.feature_config())) {
      if (std::ranges::find(tables, config.table) == tables.end()) tables.push_back(config.table);
    }
    const size_t i = std::ranges::find(tables, feature.config.table) - tables.begin();
    const auto it = tables_.find({&layer, i});
    if (it != tables_.end()) return it->second;
    const auto [own, values] = layer.embedding_tables()[i];
    const layers::Embedding made({.input_dim = own->vocabulary_size,
                                  .output_dim = own->dim,
                                  .name = unique(layer.name() + "_" + own->name),
                                  .trainable = layer.trainable()});
    made->build(Specs(ids.spec()));
    made->embeddings().assign(values);
    tables_.emplace(std::pair(&layer, i), made);
    return made;
  }

  std::string unique(const Feature& feature, const char* what) {
    std::string name = str(feature.layer.name(), "_", feature.path, "_", what);
    std::ranges::replace(name, '/', '_');
    return unique(std::move(name));
  }

  std::string unique(std::string name) {
    const auto taken = [&](const std::string& candidate) {
      const auto is_it = [&](const auto& layer) { return layer->name() == candidate; };
      return std::ranges::any_of(model_.layers(), is_it) ||
             std::ranges::find(names_, candidate) != names_.end();
    };
    std::string out = name;
    for (int i = 1; taken(out); ++i) out = str(name, "_", i);
    names_.push_back(out);
    return out;
  }

  // Returns the model's inputs, followed by the new ones.
  Tensors inputs() const {
    Tensors first = replaced(model_.inputs());
    if (presence_.empty()) return first;
    if (first.is_dict()) {
      Tensors::Dict all = first.entries();
      for (const auto& [name, tensor] : presence_) all.emplace(name + "_weights", tensor);
      return Tensors(std::move(all));
    }
    Tensors::Items all;
    if (first.is_leaf()) {
      all.push_back(first);
    } else {
      all = first.items();
    }
    for (const auto& [name, tensor] : presence_) all.emplace_back(tensor);
    return Tensors::list(std::move(all));
  }

  const FunctionalModel& model_;
  const MinCount& min_count_;
  NodeResults results_;
  std::map<const FunctionalModel*, ModelHandle> models_;  // rewritten nested models
  std::map<std::string, Tensor> presence_;                // new weights, by the name of the ids
  std::map<std::pair<const TPUEmbeddingLayer*, size_t>, LayerHandle<Layer>> tables_;
  std::map<std::pair<const Layer*, std::string>, DynamicLayers> dynamic_tables_;
  std::vector<std::string> names_;  // names of new layers
  KerasInteractions interactions_{[this](std::string name) { return unique(std::move(name)); }};
};

}  // namespace

// Custom classes are not checked, because the user can register them in Keras. DistributedEmbedding
// is treated like the other layers of large tables, although keras_rs has it: files for Keras hold
// tables as the weights of ordinary layers.
const Layer* unknown_to_keras(const Layer& layer) {
  if (layer_registry().traits(layer.class_name()).package == "keel" ||
      dynamic_cast<const DistributedEmbeddingLayer*>(&layer) != nullptr ||
      !dynamic_tables_of(layer).empty()) {
    return &layer;
  }
  for (const auto& child : layer.sublayers()) {
    if (const Layer* const found = unknown_to_keras(*child)) return found;
  }
  return nullptr;
}

ModelHandle keras_model_of(const Model& model, const MinCount& min_count) {
  require_no_replica("save_model");
  require_built("save_model", model);
  const Layer* const unknown = unknown_to_keras(model);
  if (unknown == nullptr && !has_keras_form_inside(model)) {
    const auto self = std::dynamic_pointer_cast<const Model>(model.shared_from_this());
    return {kAdopt, std::const_pointer_cast<Model>(self)};
  }
  const auto* functional = dynamic_cast<const FunctionalModel*>(&model);
  if (functional == nullptr) {
    throw ValueError("save_model for Keras: ", unknown->class_name(), " '", unknown->name(),
                     "' has no layer in Keras, and only functional models can be rewritten; '",
                     model.name(), "' is a ", model.class_name());
  }
  return Rewriter(*functional, min_count).rewrite();
}

}  // namespace keel
