#include "autodiff/tape.h"
#include "distribute/strategy.h"
#include "layers/embedding/backend.h"
#include "layers/embedding/host_lookup.h"

namespace keel {

std::vector<Variable> TPUEmbeddingLayer::VariableBackend::build() {
  for (const TableSet::Entry& table : tables_.tables) {
    const TableConfig& config = *table.own;
    variables_.emplace_back(table_initializer(config)({config.vocabulary_size, config.dim}),
                            VariableOptions{.name = config.name});
  }
  return variables_;
}

void TPUEmbeddingLayer::VariableBackend::check_strategy() const {
  if (distribute::Strategy::current().is_tpu()) {
    throw RuntimeError(
        "TPUEmbedding: the layer was not made under a TPUStrategy and is called "
        "under one; make it inside the strategy's scope");
  }
}

Tensors TPUEmbeddingLayer::VariableBackend::look_up(const Tensors& features,
                                                    const FeatureWeights& weights,
                                                    const Nest<FeatureConfig>& config) {
  return host_embedding_lookup(features, weights, config, [this](const Table& table) {
    return variables_[tables_.find(table)].read();
  });
}

Tensor TPUEmbeddingLayer::VariableBackend::read(int table) const {
  return variables_[table].read();
}

void TPUEmbeddingLayer::VariableBackend::write(int table, const Tensor& values) {
  variables_[table].assign(values);
}

}  // namespace keel
