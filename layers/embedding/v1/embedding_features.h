// EmbeddingFeatures: the lookups of the estimator on the host, where an embedding engine does them
// on an accelerator.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <keel/layers/embedding/tables/table_config.h>
#include <keel/layers/embedding/v1/tpu_embedding_v1_config.h>
#include <keel/layers/layer.h>

namespace keel {

// Options of EmbeddingFeaturesLayer.
struct EmbeddingFeaturesOptions {
  tpu::v1::Configs configs = {};  // required: tables and features
  // Features whose lookups drop nothing; see use_safe_embedding_lookup of TPUEmbeddingColumn.
  std::vector<std::string> unsafe_features = {};
  std::string name = {};   // name of the layer; empty: chosen from its class
  bool trainable = true;   // false: its variables are not trained
  DTypePolicy dtype = {};  // dtype of the computation and of the variables
};

// Converts a dict of raw features to the features of the model: the features that no config names,
// without those used as weights, and the activations of ids under the features' keys. A sequence
// feature also gives "<key>_seq_length_", int64 [batch], the number of steps of each row that are
// looked up. Lookups of pooled ids drop negative ids, and weights that are not positive unless the
// combiner is sum. Dense ids of rank 1 or 2 of a table with a combiner lose the id 0.
// Throws ValueError, naming the feature's key, for a feature or weights that the batch does not
// contain; for ids that are not integers or are outside the table; for weights of dense ids of a
// table without a combiner; for dense weights; and for weights with other positions than the ids.
class EmbeddingFeaturesLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "EmbeddingFeatures";  // the name of the class in configs
  using Options = EmbeddingFeaturesOptions;                  // arguments of the constructor
  // Keeps the configs. The variables are created when the layer is built.
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
using EmbeddingFeatures = LayerHandle<EmbeddingFeaturesLayer>;  // A handle to the layer.
}

}  // namespace keel
