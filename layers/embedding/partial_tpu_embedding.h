// PartialTPUEmbedding: large tables in a TPUEmbedding, small ones as ordinary variables
// (tfrs.experimental.layers.embedding.PartialTPUEmbedding).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/tables/invalid_id_counter.h>
#include <keel/layers/embedding/tpu_embedding.h>

namespace keel {

struct PartialTPUEmbeddingOptions {
  Nest<FeatureConfig> feature_config;  // a dict of features
  EmbeddingOptimizer optimizer = {};   // of the large tables that have not their own
  bool pipeline_execution_with_tensor_core = false;
  std::optional<int64_t> batch_size = {};
  // Tables of more rows than this are large. Unset: none is; 0: all are.
  std::optional<int64_t> size_threshold = 10000;
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// Takes a dict of features and gives one of activations. Features of large tables are looked up
// by one TPUEmbedding, which see. Each small table is an Embedding layer, one for each TableConfig
// object, updated by the optimizer that the caller applies; its features must be dense ids,
// [...] -> [..., dim], and its first values are the table's initializer's, or "uniform".
// ValueError, with the feature's name, for sparse or ragged ids of a small table, and for an id
// outside its table unless the feature's id_policy says otherwise.
class PartialTPUEmbeddingLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "PartialTPUEmbedding";
  using Options = PartialTPUEmbeddingOptions;

  // ValueError as TPUEmbedding says, and for a negative size_threshold; TypeError unless
  // feature_config is a dict of features.
  explicit PartialTPUEmbeddingLayer(Options options);

  // Empty if no table is large.
  const std::optional<layers::TPUEmbedding>& tpu_embedding() const { return tpu_embedding_; }
  // By feature.
  const std::map<std::string, layers::Embedding>& keras_embedding_layers() const {
    return keras_embedding_layers_;
  }

  std::vector<std::string> training_notices() const override;
  Config get_config() const override;
  static std::shared_ptr<PartialTPUEmbeddingLayer> from_config(const Config& config);

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  bool is_large(const FeatureConfig& feature) const;
  void add_small(const std::string& name, const FeatureConfig& feature);

  const Options options_;
  const TableSet tables_;
  std::optional<layers::TPUEmbedding> tpu_embedding_;
  std::map<std::string, layers::Embedding> keras_embedding_layers_;
  Nest<FeatureConfig>::Dict small_features_;
  std::unique_ptr<InvalidIdCounter> tally_;  // of small features
};

namespace layers {
using PartialTPUEmbedding = LayerHandle<PartialTPUEmbeddingLayer>;
}

}  // namespace keel
