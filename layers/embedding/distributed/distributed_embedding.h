// DistributedEmbedding: pooled lookups in embedding tables, each placed on the sparse cores of an
// accelerator or on the default device (keras_rs.layers.DistributedEmbedding).
//
// The embedding engine of a TPUStrategy is its sparse cores, one for each replica:
//   sparsecore      tables are stacked (table_stacking.h), split over the replicas and trained by
//                   their own optimizers; one virtual variable stands for them all, as in
//                   TPUEmbedding (tpu_embedding.h).
//   default_device  each table is an EmbedReduce sublayer, trained by the model's optimizer.
//   auto            sparsecore where the layer is made under a TPUStrategy, else default_device.
// Files know a table by its name only, "<table>/embeddings": what was trained on one placement or
// under one stacking loads on another.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/embedding/distributed/distributed_config.h>
#include <keel/layers/embedding/distributed/id_limits.h>
#include <keel/layers/embedding/distributed/table_stacking.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/layer.h>
#include <keel/layers/sublayer_attributes.h>

namespace keel {

class SparseCore;

struct DistributedEmbeddingOptions {
  Nest<keras_rs::FeatureConfig> feature_configs;
  TableStacking table_stacking = "auto";  // of the tables on sparse cores
  bool update_stats = false;              // not offered (ValueError): see id_limit_policy
  // What max_ids_per_partition and max_unique_ids_per_partition of tables on sparse cores mean.
  IdLimitPolicy id_limit_policy = IdLimitPolicy::kUnlimited;
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};  // of tables on the default device
};

struct DistributedEmbeddingCallOptions {
  std::optional<bool> training = {};
  // Same structure as the features; an empty leaf means ones. Layouts and shapes as EmbedReduce
  // takes them, but for one weight for each element, which sparse cores do not have.
  std::optional<Nest<std::optional<TensorLike>>> weights = {};
};

// Call with ids in the structure of feature_configs, or with what preprocess() returned; the
// result has that structure too. Each feature, of any layout that its input_shape allows, gives
// [rows, embedding_dim], pooled as EmbedReduce says. In replicas, rows are the replica's.
// ValueError for another structure (TypeError for other containers), for ids outside their table
// and shapes that do not fit, with the feature's path ("group/watched"). Of a layer with tables on
// sparse cores: RuntimeError if it is called under another strategy than it was made under, or
// built while the strategy holds the tables of another layer.
class DistributedEmbeddingLayer final : public Layer, public WeightAttributes {
 public:
  static constexpr char kClassName[] = "DistributedEmbedding";
  using Options = DistributedEmbeddingOptions;
  using CallOptions = DistributedEmbeddingCallOptions;

  // ValueError as keras_rs::check_feature and stack_tables say, for tables of one name, for two
  // features of one path, for placement sparsecore without sparse cores, and for update_stats.
  // Keeps copies of the tables' configs.
  explicit DistributedEmbeddingLayer(Options options);
  ~DistributedEmbeddingLayer() override;

  // Whether a layer made now would find sparse cores.
  static bool has_sparsecores();

  Tensors operator()(const Tensors& inputs, const CallOptions& options = {});
  // With one feature and no structure around it.
  Tensor operator()(const Tensor& input, const CallOptions& options = {});
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;

  // Builds the layer, and sorts features and weights by placement and path:
  //   {"preprocessed_inputs_per_placement": {placement: {"inputs": {path: ids},
  //                                                      "weights": {path: weights}}}}
  // Symbolic inputs too.
  Tensors preprocess(const Tensors& inputs, const CallOptions& options = {});
  // The configured output shapes. ValueError for input shapes that do not fit feature_configs; the
  // batch may be the global one or a replica's.
  Nest<Shape> compute_output_shape(const Nest<Shape>& input_shapes) const;

  // Copies of the tables by name, [vocabulary_size, embedding_dim]. RuntimeError before the layer
  // is built. Not while replicas run.
  std::map<std::string, Tensor> get_embedding_tables() const;
  // Replaces the tables named. ValueError for an unknown name or another shape, and then no table
  // is changed; RuntimeError before the layer is built.
  void set_embedding_tables(const std::map<std::string, Tensor>& tables);

  const Nest<keras_rs::FeatureConfig>& feature_configs() const { return options_.feature_configs; }
  // How tables on sparse cores are stacked; empty without any.
  std::vector<TableStack> table_stacks() const;
  // Of the tables on sparse cores, by name; zeros under IdLimitPolicy::kUnlimited.
  std::map<std::string, IdStatistics> id_statistics() const;

  std::vector<std::string> training_notices() const override;  // says how many ids were dropped

  std::vector<StateEntry> state_entries() const override;
  // The EmbedReduce layers that keras_rs makes on the default device, one for each table, numbered
  // by the features that it has met.
  std::vector<std::string> weight_attributes() const override;
  Config get_config() const override;
  static std::shared_ptr<DistributedEmbeddingLayer> from_config(const Config& config);

 private:
  using Weights = std::optional<Nest<std::optional<TensorLike>>>;
  struct Table;    // a table, where it is placed and what holds it
  struct Feature;  // a leaf of feature_configs
  struct Input;    // the ids and weights of a feature

  void collect_features();
  void make_tables();
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  void check_structure(const Tensors& inputs, const Weights& weights) const;
  void check_specs(const Specs& inputs) const;
  Tensors group_by_placement(const Tensors& inputs, const Weights& weights) const;
  std::vector<Input> inputs_of(const Tensors& preprocessed) const;
  Tensor look_up_default(const Feature& feature, const Input& input) const;
  void look_up_sparsecore(const std::vector<Input>& inputs, std::vector<Tensor>& out) const;

  const Options options_;
  std::vector<Table> tables_;                // in order of first use
  std::vector<Feature> features_;            // in flattening order
  std::unique_ptr<SparseCore> sparse_core_;  // null without tables there
};

namespace layers {
using DistributedEmbedding = LayerHandle<DistributedEmbeddingLayer>;
}

}  // namespace keel
