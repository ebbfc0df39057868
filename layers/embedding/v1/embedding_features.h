// EmbeddingFeatures: the lookups of the estimator on the host, where an embedding engine does them
// on an accelerator.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <keel/layers/embedding/tables/table_config.h>
#include <keel/layers/embedding/v1/v1_input.h>
#include <keel/layers/layer.h>

namespace keel {

// Options of EmbeddingFeaturesLayer.
struct EmbeddingFeaturesOptions {
  tpu::v1::Configs configs = {};
  // Features whose lookups drop nothing; see use_safe_embedding_lookup of TPUEmbeddingColumn.
  std::vector<std::string> unsafe_features = {};
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// Converts a dict of raw features to the features of the model (see tpu::v1::split_inputs), with
// the activations of ids under the features' keys. Lookups of pooled ids drop negative ids, and
// weights that are not positive unless the combiner is sum. Throws under the conditions of
// split_inputs and host_embedding_lookup.
class EmbeddingFeaturesLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "EmbeddingFeatures";
  using Options = EmbeddingFeaturesOptions;
  explicit EmbeddingFeaturesLayer(Options options);

  // Returns the tables' variables by table; each has the name of its table. Creates them if the
  // layer is not built.
  const std::map<std::string, Variable>& tables();
  // Omits the options that only training uses: learning rates and optimization parameters.
  Config get_config() const override;
  // Creates a layer from get_config().
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
