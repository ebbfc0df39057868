#include "layers/embedding/tpu_embedding.h"

#include "autodiff/tape.h"
#include "distribute/strategy.h"
#include "layers/embedding/backend.h"
#include "layers/embedding/host_lookup.h"

namespace keel {
namespace {

// In the layer's inputs an absent weight is a dense tensor, which no real weight is.
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

bool same_structure(const Nest<FeatureConfig>& config, const Tensors& features) {
  try {
    assert_same_structure(config, features);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

TPUEmbeddingLayer::TPUEmbeddingLayer(Options options)
    : Layer(kClassName, options),
      options_(std::move(options)),
      tables_(collect_tables(options_.feature_config, options_.optimizer)),
      features_(tables_.on_own_tables(options_.feature_config, kClassName)) {
  const distribute::Strategy& strategy = distribute::Strategy::current();
  if (strategy.is_tpu()) {
    backend_ = std::make_unique<EngineBackend>(tables_, features_, strategy.num_replicas_in_sync());
  } else {
    backend_ = std::make_unique<VariableBackend>(tables_);
  }
}

TPUEmbeddingLayer::~TPUEmbeddingLayer() = default;

void TPUEmbeddingLayer::build_weights(const Specs&) {
  for (const Variable& variable : backend_->build()) add_weight(variable);
}

Tensors TPUEmbeddingLayer::operator()(const Tensors& features, const CallOptions& options) {
  if (options.serving_config) {
    if (!built()) throw RuntimeError("TPUEmbedding ", name(), ": not built yet; call it once");
    if (any_symbolic(features)) {
      throw RuntimeError("TPUEmbedding ", name(),
                         ": serving_config looks values up; it cannot be part of a graph");
    }
    return host_embedding_lookup(
        features, options.weights,
        tables_.on_own_tables(*options.serving_config, "TPUEmbedding serving_config"),
        [this](const Table& table) { return backend_->read(tables_.find(table)); });
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
  // With weights the inputs are the pair of both structures; a finite structure is never a pair
  // of itself.
  const bool weighted = inputs.kind() == NestKind::kTuple && inputs.items().size() == 2 &&
                        !same_structure(features_, inputs);
  if (!weighted) return backend_->look_up(inputs, std::nullopt, features_);
  return backend_->look_up(inputs[0], unpack_weights(inputs[1]), features_);
}

std::vector<std::pair<Table, Tensor>> TPUEmbeddingLayer::embedding_tables() const {
  if (!built()) throw RuntimeError("TPUEmbedding ", name(), ": not built yet; call it once");
  const NoGradient pause;
  std::vector<std::pair<Table, Tensor>> out;
  for (size_t t = 0; t < tables_.tables.size(); ++t) {
    out.emplace_back(tables_.tables[t].original, backend_->read(static_cast<int>(t)));
  }
  return out;
}

void TPUEmbeddingLayer::update_embedding_table(const Table& table, const Tensor& values) {
  if (!built()) throw RuntimeError("TPUEmbedding ", name(), ": not built yet; call it once");
  const int found = tables_.find(table);
  if (found < 0) throw ValueError("TPUEmbedding ", name(), ": the table is not one of the layer's");
  backend_->write(found, values);
}

std::vector<StateEntry> TPUEmbeddingLayer::state_entries() const {
  std::vector<StateEntry> out = Layer::state_entries();
  const std::vector<StateEntry> held = backend_->state_entries();
  out.insert(out.end(), held.begin(), held.end());
  return out;
}

}  // namespace keel
