// EmbeddingFeatures: the lookups that an embedding engine does for the estimator, on the host.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <keel/layers/embedding/tables/table_config.h>
#include <keel/layers/embedding/v1/v1_input.h>
#include <keel/layers/layer.h>

namespace keel {

struct EmbeddingFeaturesOptions {
  tpu::v1::Configs configs = {};
  // Features whose lookups leave nothing out: see TPUEmbeddingColumn's use_safe_embedding_lookup.
  std::vector<std::string> unsafe_features = {};
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// Takes a batch of raw features, a dict; gives what the model gets of it: see
// tpu::v1::split_inputs, with the activations of ids under the features' keys. Pooled ids leave out
// negative ones, and weights that are not positive unless the combiner is sum. Errors as
// split_inputs and host_embedding_lookup.
class EmbeddingFeaturesLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "EmbeddingFeatures";
  using Options = EmbeddingFeaturesOptions;
  explicit EmbeddingFeaturesLayer(Options options);

  // The tables' variables, by table, each of its table's name. Made when the layer is built, or by
  // the first call of this.
  const std::map<std::string, Variable>& tables();
  // Without what only training asks for: rates and optimization parameters.
  Config get_config() const override;
  static std::shared_ptr<EmbeddingFeaturesLayer> from_config(const Config& config);

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;

  const Options options_;
  std::map<std::string, Table> configs_;  // by table
  std::map<std::string, Variable> tables_;
};

namespace layers {
using EmbeddingFeatures = LayerHandle<EmbeddingFeaturesLayer>;
}

}  // namespace keel
