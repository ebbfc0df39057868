// PartialTPUEmbedding: holds large tables in a TPUEmbedding and small ones in ordinary variables
// (tfrs.experimental.layers.embedding.PartialTPUEmbedding).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/tpu_embedding.h>

namespace keel {

class InvalidIdCounter;
class LookupCounter;

// Options of PartialTPUEmbeddingLayer.
struct PartialTPUEmbeddingOptions {
  Nest<FeatureConfig> feature_config;  // a dict of features
  EmbeddingOptimizer optimizer = {};   // for large tables without their own optimizer
  // See TPUEmbeddingOptions.
  bool pipeline_execution_with_tensor_core = false;
  std::optional<int64_t> batch_size = {};  // see TPUEmbeddingOptions
  // Tables with more rows than this are large. Unset: no table is large. 0: all tables are.
  std::optional<int64_t> size_threshold = 10000;
  bool collect_statistics = false;  // see TPUEmbeddingOptions; also counts lookups of small tables
  std::string name = {};            // name of the layer; empty: chosen from its class
  bool trainable = true;            // false: its variables are not trained
  DTypePolicy dtype = {};           // dtype of the computation and of the variables
};

// Looks up a dict of features and returns a dict of activations. One TPUEmbedding looks up the
// features of large tables (see tpu_embedding.h). Each small table is one Embedding layer per
// TableConfig object, trained by the optimizer that the caller applies. The features of small
// tables must be dense ids, [...] -> [..., dim]. A small table is initialized by its TableConfig's
// initializer, or by "uniform" if that is unset. Throws NotImplementedError for l2 and max_norm of
// a small table. Throws ValueError, naming the feature, for sparse or ragged ids of a small table.
// Throws ValueError for an id outside its table unless the feature's id_policy allows it.
class PartialTPUEmbeddingLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "PartialTPUEmbedding";  // the name of the class in configs
  using Options = PartialTPUEmbeddingOptions;                  // arguments of the constructor

  // Throws ValueError under the conditions of TPUEmbedding and for a negative size_threshold.
  // Throws TypeError unless feature_config is a dict of features.
  explicit PartialTPUEmbeddingLayer(Options options);
  ~PartialTPUEmbeddingLayer() override;

  // Returns the layer that holds the large tables; unset if no table is large.
  const std::optional<layers::TPUEmbedding>& tpu_embedding() const { return tpu_embedding_; }
  // Returns the Embedding layers of the small tables, by feature name.
  const std::map<std::string, layers::Embedding>& keras_embedding_layers() const {
    return keras_embedding_layers_;
  }

  // Returns the counts of all lookups by table name. Those of large tables are those of
  // TPUEmbeddingLayer::lookup_statistics(). Throws RuntimeError without the option
  // collect_statistics.
  std::map<std::string, LookupStatistics> lookup_statistics() const;

  // Returns one line for each nonzero count of dropped or replaced ids, for the features of small
  // tables, and their lookup_statistics() if they are collected.
  std::vector<std::string> training_notices() const override;
  Config get_config() const override;  // Returns the options.
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
  std::unique_ptr<InvalidIdCounter> invalid_ids_;  // counts features with a small table
  std::unique_ptr<LookupCounter> lookup_counter_;  // set by collect_statistics
};

namespace layers {
// A handle to the layer, under its name in TensorFlow Recommenders.
using PartialTPUEmbedding = LayerHandle<PartialTPUEmbeddingLayer>;
}  // namespace layers

}  // namespace keel
