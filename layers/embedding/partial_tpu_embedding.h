// PartialTPUEmbedding: holds large tables in a TPUEmbedding and small ones in ordinary variables
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

// Options of PartialTPUEmbeddingLayer.
struct PartialTPUEmbeddingOptions {
  Nest<FeatureConfig> feature_config;  // a dict of features
  EmbeddingOptimizer optimizer = {};   // for large tables without their own optimizer
  bool pipeline_execution_with_tensor_core = false;
  std::optional<int64_t> batch_size = {};
  // Tables with more rows than this are large. Unset: no table is large. 0: all tables are.
  std::optional<int64_t> size_threshold = 10000;
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// Looks up a dict of features and returns a dict of activations. One TPUEmbedding looks up the
// features of large tables (see tpu_embedding.h). Each small table is one Embedding layer per
// TableConfig object, trained by the optimizer that the caller applies. The features of small
// tables must be dense ids, [...] -> [..., dim]. A small table is initialized by its TableConfig's
// initializer, or by "uniform" if that is unset.
// Throws ValueError, naming the feature, for sparse or ragged ids of a small table. Throws
// ValueError for an id outside its table unless the feature's id_policy allows it.
class PartialTPUEmbeddingLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "PartialTPUEmbedding";
  using Options = PartialTPUEmbeddingOptions;

  // Throws ValueError under the conditions of TPUEmbedding and for a negative size_threshold.
  // Throws TypeError unless feature_config is a dict of features.
  explicit PartialTPUEmbeddingLayer(Options options);

  // Returns the layer that holds the large tables; unset if no table is large.
  const std::optional<layers::TPUEmbedding>& tpu_embedding() const { return tpu_embedding_; }
  // Returns the Embedding layers of the small tables, by feature name.
  const std::map<std::string, layers::Embedding>& keras_embedding_layers() const {
    return keras_embedding_layers_;
  }

  // Returns one line for each nonzero count of dropped or replaced ids, for the features of small
  // tables.
  std::vector<std::string> training_notices() const override;
  Config get_config() const override;
  // Creates a layer from get_config().
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
  std::unique_ptr<InvalidIdCounter> tally_;  // of features with a small table
};

namespace layers {
using PartialTPUEmbedding = LayerHandle<PartialTPUEmbeddingLayer>;
}

}  // namespace keel
