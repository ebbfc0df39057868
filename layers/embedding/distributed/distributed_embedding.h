// DistributedEmbedding: pooled lookups in embedding tables, each placed on the sparse cores of an
// accelerator or on the default device (keras_rs.layers.DistributedEmbedding).
//
// The embedding engine of a TPUStrategy provides the sparse cores, one for each replica.
// Placements:
//   sparsecore      Tables are stacked (TableStacking), sharded over the replicas and trained
//                   by their own optimizers. One virtual variable represents all of them, as in
//                   TPUEmbedding (tpu_embedding.h).
//   default_device  Each table is an EmbedReduce sublayer, trained by the model's optimizer.
//   auto            sparsecore if the layer is constructed under a TPUStrategy, else
//                   default_device.
// Files identify a table by its name only, "<table>/embeddings". Values trained with one placement
// or stacking can be loaded with another.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/embedding/distributed/distributed_config.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/embedding/tables/feature_lookups.h>
#include <keel/layers/embedding/tables/lookup_statistics.h>
#include <keel/layers/layer.h>
#include <keel/layers/layer_types.h>

namespace keel {

class LookupCounter;
class SparseCore;
struct IdRows;

// Options of DistributedEmbeddingLayer.
struct DistributedEmbeddingOptions {
  Nest<keras_rs::FeatureConfig> feature_configs;  // required: the features, in any structure
  TableStacking table_stacking = "auto";          // how tables on sparse cores are stacked
  // If true, the limits of tables on sparse cores grow to what the batches need, so that no id is
  // dropped; id_limits() returns them. Requires a table on sparse cores (else ValueError).
  bool update_stats = false;
  // Selects how max_ids_per_partition and max_unique_ids_per_partition apply to tables on sparse
  // cores.
  IdLimitPolicy id_limit_policy = IdLimitPolicy::kUnlimited;
  // Counts the ids of all lookups, for lookup_statistics() and the notices of fit(). Costs a sort
  // of each batch's ids and changes no result.
  bool collect_statistics = false;
  std::string name = {};   // name of the layer; empty: chosen from its class
  bool trainable = true;   // false: its variables are not trained
  DTypePolicy dtype = {};  // policy of tables on the default device
};

// Options of one call of DistributedEmbeddingLayer.
struct DistributedEmbeddingCallOptions {
  std::optional<bool> training = {};  // unset: that of the surrounding call
  // The weights, with the structure of the features. An empty leaf means ones. Layouts and shapes
  // are those of EmbedReduce, except that sparse cores do not support one weight for each element.
  std::optional<Nest<std::optional<TensorLike>>> weights = {};
};

// Looks up ids packed like feature_configs, or the output of preprocess(); the result is packed
// like feature_configs. Each feature, of any layout that its input_shape allows, gives [rows,
// embedding_dim], pooled like in EmbedReduce. In replicas, rows are those of the replica.
// Throws ValueError for another structure (TypeError for other containers). Throws ValueError,
// naming the feature's path ("group/watched"), for ids outside their table and for shapes that do
// not fit. A layer with tables on sparse cores throws RuntimeError if it is called under another
// strategy than it was constructed under, or built while the strategy holds the tables of another
// layer.
class DistributedEmbeddingLayer final : public Layer,
                                        public WeightAttributes,
                                        public DynamicTableOwner,
                                        public FeatureLookups {
 public:
  static constexpr char kClassName[] = "DistributedEmbedding";  // the name of the class in configs
  using Options = DistributedEmbeddingOptions;                  // arguments of the constructor
  using CallOptions = DistributedEmbeddingCallOptions;          // arguments of a call

  // Throws ValueError for a feature without a table; for shapes other than FeatureConfig describes;
  // for a table whose name is empty or contains '/', whose dimensions are not positive, or whose
  // combiner or placement is unknown; for two tables with the same name; for two features with the
  // same path; for placement sparsecore without sparse cores; for a table_stacking that names a
  // table twice, an unknown table, or tables that differ in padded dim, optimizer or combiner; and
  // for update_stats without a table on sparse cores. The layer copies the tables' configs.
  explicit DistributedEmbeddingLayer(Options options);
  ~DistributedEmbeddingLayer() override;

  // Returns true if a layer constructed under the current strategy has sparse cores.
  static bool has_sparsecores();

  // Looks up one batch.
  Tensors operator()(const Tensors& inputs, const CallOptions& options = {});
  // Looks up a feature_configs that is a single feature without a container.
  Tensor operator()(const Tensor& input, const CallOptions& options = {});
  // Repeats a recorded call.
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;

  // Builds the layer, and groups ids and weights by placement and path:
  //   {"preprocessed_inputs_per_placement": {placement: {"inputs": {path: ids},
  //                                                      "weights": {path: weights}}}}
  // Accepts symbolic inputs.
  Tensors preprocess(const Tensors& inputs, const CallOptions& options = {});
  // Returns the configured output shapes. Throws ValueError for input shapes that do not fit
  // feature_configs. The batch dimension may be that of the global batch or of one replica.
  Nest<Shape> compute_output_shape(const Nest<Shape>& input_shapes) const;

  // Returns copies of the tables by name, [vocabulary_size, embedding_dim], or for dynamic ids the
  // rows in ascending order of ids. Throws RuntimeError
  // before the layer is built. Do not call it while replicas run.
  std::map<std::string, Tensor> get_embedding_tables() const;
  // Replaces the given tables. Throws ValueError for an unknown name or another shape, without
  // changing any table; also for a table with dynamic ids, which has assign_rows(). Throws
  // RuntimeError before the layer is built.
  void set_embedding_tables(const std::map<std::string, Tensor>& tables);

  // Returns a handle for calls between steps to the table with this name, which must have dynamic
  // ids (else ValueError). Throws RuntimeError before the layer is built.
  DynamicTable dynamic_table(const std::string& table) const;
  std::vector<std::pair<std::string, DynamicTable>> dynamic_tables() const override;

  // Returns the features that the layer was created with.
  const Nest<keras_rs::FeatureConfig>& feature_configs() const { return options_.feature_configs; }
  // Returns the layer's copy of the table that the feature with this path looks up. Throws
  // ValueError for an unknown path.
  std::shared_ptr<const keras_rs::TableConfig> table_of_feature(const std::string& path) const;
  // Returns the names of the tables in each stack of tables on sparse cores; empty without such
  // tables.
  std::vector<std::vector<std::string>> table_stacks() const;
  // Returns the statistics of the tables on sparse cores, by name; zeros under
  // IdLimitPolicy::kUnlimited without update_stats.
  std::map<std::string, IdStatistics> id_statistics() const;
  // Returns the limits of the tables on sparse cores, by name. With update_stats, they have grown
  // with the batches of this process.
  std::map<std::string, IdLimits> id_limits() const;
  // Replaces limits, for example by those of an earlier run (read_id_limits). Tables that the layer
  // does not have on sparse cores are ignored. Throws ValueError for limits that apply and are not
  // positive, before any is replaced. Do not call it while replicas run.
  void set_id_limits(const std::map<std::string, IdLimits>& limits);

  // Returns the counts of all lookups by table name, of both placements and of the replicas of this
  // process, since the layer was constructed. Ids beyond a limit or the length of a row are not
  // looked up. Throws RuntimeError without the option collect_statistics. Lookups that a serving
  // plan computes without calling the layer are not counted.
  std::map<std::string, LookupStatistics> lookup_statistics() const;

  // Reports dropped ids, dynamic tables and, if they are collected, lookup_statistics().
  std::vector<std::string> training_notices() const override;

  // Returns the values of all tables, and the slots of those on sparse cores.
  std::vector<StateEntry> state_entries() const override;
  // Returns, for each weight, the name of the EmbedReduce layer that keras_rs creates for its table
  // on the default device. keras_rs creates one per table and numbers them by the index of the
  // first feature that uses the table.
  std::vector<std::string> weight_attributes() const override;
  // For code that rewrites graphs; see FeatureLookups.
  std::vector<FeatureLookup> lookups(const Tensors& inputs) const override;
  Tensors pack_features(const std::vector<TensorLike>& values) const override;
  Config get_config() const override;  // Returns the options, as keras_rs writes them.
  // Creates a layer from get_config().
  static std::shared_ptr<DistributedEmbeddingLayer> from_config(const Config& config);
  // Adds the lookups to a serving plan if all tables are float32 and on the default device.
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;

 private:
  using Weights = std::optional<Nest<std::optional<TensorLike>>>;
  struct Table;    // a table, its placement and its storage
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
  void check_spec(const Feature& feature, const TensorSpec& ids) const;
  IdRows rows_of(const Feature& feature, const Input& input) const;
  std::vector<IdRows> look_up_sparsecore(const std::vector<Input>& inputs,
                                         std::vector<Tensor>& out) const;
  void count_lookups(const std::vector<Input>& inputs,
                     const std::vector<IdRows>& on_sparsecore) const;

  const Options options_;
  std::vector<Table> tables_;                      // in order of first use
  std::vector<Feature> features_;                  // in flattening order
  std::unique_ptr<SparseCore> sparse_core_;        // null without tables on sparse cores
  std::unique_ptr<LookupCounter> lookup_counter_;  // set by collect_statistics
};

namespace layers {
// A handle to the layer, under keras_rs's name.
using DistributedEmbedding = LayerHandle<DistributedEmbeddingLayer>;
}  // namespace layers

}  // namespace keel
