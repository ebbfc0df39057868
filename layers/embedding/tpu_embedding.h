// TPUEmbedding: pooled lookups in large embedding tables.
//
// The strategy that is current when the layer is constructed selects how it stores its tables:
//   under a TPUStrategy  The tables are sharded over the cores and belong to an
//                        engine. They are not trainable variables. One *virtual
//                        variable*, which is trainable, represents all of them:
//                        computing its gradient with a tape updates the tables
//                        with the tables' own optimizers.
//   under a TPUStrategy with embedding_feature kUnsupported ("V0")
//                        The tables are ordinary trainable variables that all
//                        cores read. The optimizer that the caller applies
//                        updates them. Meant for small tables.
//   otherwise            The tables are ordinary trainable variables on the host.
// A training step written with tape.gradient(loss, model->trainable_variables()) and
// optimizer->apply_gradients(...) works in all three modes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <keel/layers/embedding/tables/dynamic_table.h>
#include <keel/layers/embedding/tables/lookup_statistics.h>
#include <keel/layers/embedding/tables/table_config.h>
#include <keel/layers/layer.h>

namespace keel {

// The embedding hardware of the accelerator: none, the engine of this layer (kV1), or that of
// layers::DistributedEmbedding (kV2).
enum class EmbeddingFeature { kUnsupported, kV1, kV2 };

// Options of TPUEmbeddingLayer.
struct TPUEmbeddingOptions {
  Nest<FeatureConfig> feature_config;  // required: the features, in any structure
  // The optimizer of tables without their own. If the tables are variables, it only selects which
  // slots are created and kept in checkpoints: "<table>/<slot>", or the slots of the given Keras
  // optimizer. Unset: no optimizer; with an engine, every table needs one.
  EmbeddingOptimizer optimizer = {};
  // Under a TPUStrategy, delays the tables' updates by one step: an update runs after the lookup of
  // the next training step, which therefore does not see it. Evaluation and files do see it.
  bool pipeline_execution_with_tensor_core = false;
  // Lets fit prefetch each batch for this layer while the step before it runs. Applies under a
  // TPUStrategy with more than one worker (num_workers), if the features are inputs of the model
  // and no other layer transforms them. Results are bit-identical with and without.
  bool pipeline_lookups = false;
  // How an engine assigns the rows of each table to the hosts: "div" gives every host a contiguous
  // block, "mod" gives row r to host r mod hosts, which spreads frequent low ids. Results, files
  // and checkpoints do not depend on it. With "mod" and several processes, saving and restoring
  // need the memory of one whole table at a time, and the first process writes it.
  std::string partition_strategy = "div";
  // Counts the ids of all lookups, for lookup_statistics() and the notices of fit(). Costs a sort
  // of each batch's ids and changes no result.
  bool collect_statistics = false;
  // With an engine: the number of rows of the global batch. The engine's record then describes this
  // batch instead of the inputs that the layer is built from. Set it if the batch dimension of
  // those inputs is unknown. Must be a multiple of the number of replicas.
  std::optional<int64_t> batch_size = {};
  // Used under a TPUStrategy. Unset: kV1, which the accelerator provides.
  std::optional<EmbeddingFeature> embedding_feature = {};
  std::string name = {};   // name of the layer; empty: chosen from its class
  bool trainable = true;   // false: its variables are not trained
  DTypePolicy dtype = {};  // dtype of the computation and of the variables
};

// Options of one call of TPUEmbeddingLayer.
struct TPUEmbeddingCallOptions {
  std::optional<bool> training = {};  // unset: that of the surrounding call
  // One weight for each id, with the structure and layouts of the features. An empty leaf means
  // ones.
  std::optional<Nest<std::optional<TensorLike>>> weights = {};
  // Looks up these features in the current tables on the host, as serving does. The structure may
  // differ from feature_config. Every table must be one of feature_config's (else ValueError).
  std::optional<Nest<FeatureConfig>> serving_config = {};
};

// Looks up features packed like feature_config; the result has the same structure. The ids of each
// feature are int32 or int64:
//   Tensor            [batch] or [..., 1] -> [batch, dim] or [..., dim] with an engine;
//                     otherwise a plain gather, [...] -> [..., dim]
//   SparseTensor, RaggedTensor of rank 2  -> [batch, dim], pooled by the table's combiner; or
//                     [batch, length, dim] without pooling if max_sequence_length is set
// One call may mix these layouts. A row without ids, or with weights that sum to 0, pools to zeros.
// Errors:
// ValueError   for an id outside its table, found before anything is computed; for a shape that
// does not fit output_shape; for
//              weights of a dense feature, or of another layout than the ids; for a structure
//              with other keys or lengths
// TypeError    for a structure with other container types
// RuntimeError if called under another kind of strategy than the layer was constructed under,
//              or if the gradient of one lookup is computed twice
// An error about one feature contains its path ("group/history").
class TPUEmbeddingLayer final : public Layer, public DynamicTableOwner {
 public:
  static constexpr char kClassName[] = "TPUEmbedding";  // the name of the class in configs
  using Options = TPUEmbeddingOptions;                  // arguments of the constructor
  using CallOptions = TPUEmbeddingCallOptions;          // arguments of a call

  // Throws ValueError under the conditions of collect_tables and for optimizers of the V1 engine.
  // Under a TPUStrategy it also throws ValueError for embedding_feature kV2, and for
  // pipeline_lookups with kUnsupported, and for an unknown partition_strategy. With an engine it
  // also throws ValueError for a table without an optimizer and for a batch_size that is not a
  // multiple of the number of replicas. The layer copies the tables' configs and does not modify
  // the user's objects.
  explicit TPUEmbeddingLayer(Options options);
  ~TPUEmbeddingLayer() override;

  // Looks up one batch.
  Tensors operator()(const Tensors& features, const CallOptions& options = {});
  // Looks up a feature_config that is a single feature without a container.
  Tensor operator()(const Tensor& feature, const CallOptions& options = {});
  // Repeats a recorded call; `inputs` may be the pair (features, weights).
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;

  // Starts the lookup of a batch that this replica will look up in a later training step. For
  // custom training loops; call it in a replica, with the same tensor objects that the lookup will
  // receive. A worker thread sorts the ids and pools the rows while the current step runs. Rows
  // that the current update changes are pooled again, so that the lookup gives the same bits with
  // and without prefetching. With several processes, only the ids are sorted.
  // Prefetch each batch once, in the order of the lookups, and at most one batch ahead of the next
  // lookup. A prefetched batch need not be looked up. Errors in a batch are reported by its lookup.
  // Does nothing if the tables are variables, before the layer is built, or with one worker
  // (num_workers). Throws RuntimeError outside replicas and under the conditions of calls.
  void prefetch(const Tensors& inputs) override;
  // Prefetches features with weights.
  void prefetch(const Tensors& features,
                const std::optional<Nest<std::optional<TensorLike>>>& weights);
  // Returns true if options.pipeline_lookups is set and prefetch() starts work in this layer. If
  // so, fit() calls prefetch().
  bool supports_prefetch() const override;

  // Returns the current tables, [rows, dim], in order of first use by a feature. The rows of a
  // table with dynamic ids are in ascending order of ids. With an engine these are copies; do not
  // call it inside a training step. If the tables are variables, they are also the
  // trainable_variables(), in this order.
  std::vector<std::pair<Table, Tensor>> embedding_tables() const;
  // Replaces the values of a table. Does nothing if the table does not belong to this layer, so
  // that one loop over many tables can serve several layers. Throws ValueError if the shape is not
  // the table's, and for a table with dynamic ids.
  void update_embedding_table(const Table& table, const Tensor& values);

  // Returns a handle for calls between steps to a table with dynamic ids. Throws ValueError for a
  // table with a vocabulary or of another layer, and RuntimeError before the layer is built.
  DynamicTable dynamic_table(const Table& table) const;
  std::vector<std::pair<std::string, DynamicTable>> dynamic_tables() const override;

  // Returns how many invalid ids the lookups have dropped or replaced (FeatureConfig::id_policy),
  // by feature path.
  std::vector<std::pair<std::string, IdCounts>> id_counts() const;
  // Returns the statistics of the lookups so far, over all replicas and processes, by table in
  // order of first use. Calls with a serving_config are not counted. Collective over the processes.
  // Throws RuntimeError unless collect_statistics is set.
  std::vector<std::pair<Table, LookupStatistics>> lookup_statistics() const;
  // Reports id_counts() and, if they are collected, lookup_statistics().
  std::vector<std::string> training_notices() const override;

  // Returns the features that the layer was created with.
  const Nest<FeatureConfig>& feature_config() const { return options_.feature_config; }
  // Returns the tables and slots, as "<table>" and "<table>/<slot>".
  std::vector<StateEntry> state_entries() const override;
  // Adds the lookups to a serving plan; unset if a plan cannot express them. Throws RuntimeError
  // with an engine.
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override;  // Returns the options.
  // Creates a layer from get_config().
  static std::shared_ptr<TPUEmbeddingLayer> from_config(const Config& config);

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  template <class T>
  bool has_weights(const Nest<T>& inputs) const;
  std::vector<Shape> output_shapes(const Specs& inputs) const;

  class Backend;          // table storage: lookup, read, write
  class EngineBackend;    // engine and virtual variable
  class VariableBackend;  // one Variable per table
  class V0Backend;        // VariableBackend under a TPUStrategy
  static std::unique_ptr<Backend> make_backend(const Options& options, const TableSet& tables,
                                               const Nest<FeatureConfig>& features);

  const Options options_;
  const TableSet tables_;
  const Nest<FeatureConfig> features_;  // feature_config with the layer's copies of the tables
  std::shared_ptr<Backend> backend_;
};

namespace layers {
// A handle to the layer, under TensorFlow's name.
using TPUEmbedding = LayerHandle<TPUEmbeddingLayer>;
}  // namespace layers

}  // namespace keel
