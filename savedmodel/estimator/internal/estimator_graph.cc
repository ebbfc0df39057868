#include <keel/savedmodel/estimator/internal/estimator_graph.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <set>

#include <keel/layers/feature_columns/dense_features.h>

namespace keel::estimator {
namespace {

constexpr char kCaller[] = "TPUEstimator";

TensorLike input_of(const TensorSpec& spec) {
  std::vector<int64_t> dims(spec.shape.dims().begin() + 1, spec.shape.dims().end());
  if (spec.layout == Layout::kRagged) return layers::ragged_input({.dtype = spec.dtype});
  if (spec.layout == Layout::kSparse) {
    std::ranges::fill(dims, kUnknown);
    return layers::sparse_input({.shape = Shape(dims), .dtype = spec.dtype});
  }
  return layers::input({.shape = Shape(dims), .dtype = spec.dtype});
}

bool is_empty(const Tensors& tensors) { return tensors.is_sequence() && tensors.items().empty(); }

void check_spec(const EstimatorSpec& spec, ModeKeys mode) {
  if (spec.mode != mode)
    throw ValueError(
        kCaller,
        ": the spec returned by model_fn has another mode; set it to the mode passed to model_fn");
  if (mode == ModeKeys::kPredict) {
    if (is_empty(spec.predictions))
      throw ValueError(
          kCaller,
          ": the spec returned by model_fn has no predictions; set EstimatorSpec::predictions");
    return;
  }
  if (!spec.loss || !spec.loss.is_symbolic() || spec.loss.rank() != 0) {
    throw ValueError(kCaller,
                     ": the spec returned by model_fn must have a scalar loss that is computed "
                     "from the arguments of model_fn");
  }
  if (mode == ModeKeys::kTrain && spec.optimizer.shared() == nullptr) {
    throw ValueError(
        kCaller, ": the spec returned by model_fn has no optimizer; set EstimatorSpec::optimizer");
  }
}

Tensors outputs_of(const EstimatorSpec& spec, ModeKeys mode) {
  if (mode == ModeKeys::kPredict) return {{"predictions", spec.predictions}};
  if (mode == ModeKeys::kTrain || spec.eval_metrics.empty()) return {{"loss", spec.loss}};
  Tensors::Dict metrics;
  for (const auto& [name, m] : spec.eval_metrics) {
    std::vector<Tensors> arguments = {m.y_true, m.y_pred};
    if (m.sample_weight) arguments.emplace_back(m.sample_weight);
    metrics.emplace(name, Tensors::tuple(std::move(arguments)));
  }
  return {{"loss", spec.loss}, {"metrics", Tensors(std::move(metrics))}};
}

// Names the scopes of layers that take columns: the name that the user gave, or "dense_features",
// "dense_features_1", ... The numbers count within this graph, so the names do not depend on graphs
// created before.
class Scopes {
 public:
  std::string of(const std::string& layer_name, const std::string& base) {
    const bool automatic =
        layer_name == base ||
        (layer_name.starts_with(base + "_") &&
         layer_name.find_first_not_of("0123456789", base.size() + 1) == std::string::npos);
    if (!automatic) return layer_name;
    const int number = counted_[base]++;
    return number == 0 ? base : absl::StrCat(base, "_", number);
  }

 private:
  std::map<std::string, int> counted_;
};

// Returns the scopes that use each column, by column name.
std::map<std::string, std::set<std::string>> column_scopes(
    const std::vector<LayerHandle<Layer>>& layers) {
  Scopes scopes;
  std::map<std::string, std::set<std::string>> out;
  for (const auto& layer : layers) {
    const std::vector<Column>* columns = nullptr;
    const char* base = nullptr;
    if (const auto* dense = dynamic_cast<const DenseFeaturesLayer*>(&*layer)) {
      columns = &dense->feature_columns();
      base = "dense_features";
    } else if (const auto* sequence = dynamic_cast<const SequenceFeaturesLayer*>(&*layer)) {
      columns = &sequence->feature_columns();
      base = "sequence_features";
    } else {
      continue;
    }
    const std::string scope = scopes.of(layer->name(), base);
    for (const Column& column : *columns) out[column->name()].insert(scope);
  }
  return out;
}

}  // namespace

std::vector<LayerHandle<Layer>> layers_by_call(const FunctionalModel& model) {
  std::vector<std::shared_ptr<const GraphNode>> nodes = model.nodes();
  std::ranges::sort(nodes, {}, [](const auto& node) { return node->sequence; });
  std::vector<LayerHandle<Layer>> out;
  for (const auto& node : nodes) {
    const auto layer = std::dynamic_pointer_cast<Layer>(node->operation);
    if (layer == nullptr || dynamic_cast<const InputLayer*>(layer.get()) != nullptr) continue;
    const LayerHandle<Layer> handle(kAdopt, layer);
    if (std::ranges::find(out, handle) == out.end()) out.push_back(handle);
  }
  return out;
}

Tensors symbolic_inputs(const Specs& specs) {
  const std::vector<std::string> paths = flatten_paths(specs);
  size_t i = 0;
  return map_structure(specs, [&](const TensorSpec& spec) -> TensorLike {
    const std::string& path = paths[i++];
    if (spec.shape.rank() == 0) {
      throw ValueError(kCaller, ": '", path, "' of the batch must have a batch dimension");
    }
    return input_of(spec);
  });
}

EstimatorGraph make_graph(const ModelFn& model_fn, const Tensors& inputs, const Tensors& features,
                          const Tensors& labels, ModeKeys mode) {
  EstimatorSpec spec = model_fn(features, labels, mode);
  check_spec(spec, mode);
  const Functional model({.inputs = inputs, .outputs = outputs_of(spec, mode)});
  return {.spec = std::move(spec), .model = model, .layers = layers_by_call(*model)};
}

std::map<std::string, std::string> table_variable_names(
    const EmbeddingConfigSpec& spec, const std::vector<LayerHandle<Layer>>& layers) {
  std::map<std::string, std::string> out;
  if (spec->feature_columns.empty()) {
    for (const auto& entry : spec->table_to_config_dict) out[entry.first] = entry.first;
    return out;
  }
  const auto scopes = column_scopes(layers);
  for (const Column& column : spec->feature_columns) {
    const auto* embedding = dynamic_cast<const tpu::TPUEmbeddingColumn*>(column.get());
    if (embedding == nullptr || embedding->on_tensor_core()) continue;
    const auto used = scopes.find(column->name());
    if (used == scopes.end()) {
      throw RuntimeError(kCaller, ": the model does not use column '", column->name(),
                         "' of embedding_config_spec; pass it to a DenseFeatures layer");
    }
    if (!embedding->is_shared() && used->second.size() > 1) {
      throw ValueError(kCaller, ": column '", column->name(), "' is used by two layers, '",
                       *used->second.begin(), "' and '", *used->second.rbegin(),
                       "', but is not shared; use tpu::shared_embedding_columns");
    }
    out[embedding->table_name()] = embedding->checkpoint_name(*used->second.begin());
  }
  return out;
}

}  // namespace keel::estimator
