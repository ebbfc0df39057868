// TPUEmbedding: pooled lookups in large embedding tables.
//
// Three ways to live, chosen by the strategy current when the layer is made:
//   under a TPUStrategy  the tables are split over the cores and belong to an
//                        engine. They are not trainable variables. One *virtual*
//                        trainable variable stands for them all: asking a tape
//                        for its gradient updates the tables with the tables'
//                        own optimizers.
//   the same, with embedding_feature kUnsupported, "V0"
//                        the tables are ordinary trainable variables that all
//                        cores read, updated by whatever optimizer the caller
//                        applies. For small tables.
//   elsewhere            the same on the host.
// One training step written with tape.gradient(loss, model->trainable_variables())
// and optimizer->apply_gradients(...) is right in all.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <keel/layers/embedding/tables/bags.h>
#include <keel/layers/layer.h>

namespace keel {

// What the accelerator has for embeddings: nothing, the engine of this layer, or that of
// layers::DistributedEmbedding.
enum class EmbeddingFeature { kUnsupported, kV1, kV2 };

struct TPUEmbeddingOptions {
  Nest<FeatureConfig> feature_config;
  // For tables without their own. Where the tables are variables it only decides which slots are
  // made and kept in checkpoints: "<table>/<slot>", or those of the Keras optimizer that is given.
  // Unset: none; with an engine every table needs one.
  EmbeddingOptimizer optimizer = {};
  // Under a TPUStrategy: the tables' updates run one step late, after the lookup of the next
  // training step, which therefore does not see them. Evaluation and files do.
  bool pipeline_execution_with_tensor_core = false;
  // Under a TPUStrategy, with more than one worker (num_workers): fit prefetches each batch for
  // this layer while the step before it runs, if the features are inputs of the model as they are.
  // No bit of any result changes.
  bool pipeline_lookups = false;
  // With an engine: rows of the global batch that its record speaks of, in place of those of the
  // inputs that the layer is built from, for inputs that do not tell. A multiple of the number of
  // replicas.
  std::optional<int64_t> batch_size = {};
  // Under a TPUStrategy; unset: kV1, what it has.
  std::optional<EmbeddingFeature> embedding_feature = {};
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

struct TPUEmbeddingCallOptions {
  std::optional<bool> training = {};
  // Per id; same structure and layouts as the features; an empty leaf means ones.
  std::optional<Nest<std::optional<TensorLike>>> weights = {};
  // Look up these features in the current tables on the host, as for serving. May differ in
  // structure from feature_config; must use its Tables (ValueError).
  std::optional<Nest<FeatureConfig>> serving_config = {};
};

// Call with features of feature_config's structure; the result has it too.
// Per feature, int32 or int64 ids:
//   Tensor            [batch] or [..., 1] -> [batch, dim] or [..., dim] with an engine;
//                     elsewhere a plain gather, [...] -> [..., dim]
//   SparseTensor, RaggedTensor of rank 2  -> [batch, dim], pooled by the table's combiner; or
//                     [batch, length, dim] unpooled when max_sequence_length is set
// Kinds may be mixed in one call. An empty or zero-weight row pools to zeros.
// ValueError   an id outside its table, found before anything is computed; shapes
//              against output_shape; weights for a dense feature, or of another
//              kind than the ids; a structure with other keys or lengths
// TypeError    a structure of other kinds
// RuntimeError called under another kind of strategy than it was made under; the gradient of one
//              lookup asked for twice
// Errors about one feature carry its path ("group/history").
class TPUEmbeddingLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "TPUEmbedding";
  using Options = TPUEmbeddingOptions;
  using CallOptions = TPUEmbeddingCallOptions;

  // ValueError as collect_tables says, for optimizers of the V1 engine, under a TPUStrategy for
  // embedding_feature kV2 and for pipeline_lookups with kUnsupported, and with an engine for a
  // table without optimizer or a batch_size that the replicas do not divide. Keeps copies of the
  // tables' configs: the user's objects are not written to.
  explicit TPUEmbeddingLayer(Options options);
  ~TPUEmbeddingLayer() override;

  Tensors operator()(const Tensors& features, const CallOptions& options = {});
  // With one feature and no structure around it.
  Tensor operator()(const Tensor& feature, const CallOptions& options = {});
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;

  // For training loops of one's own, in a replica: says what it will look up next in training, by
  // the same tensors. Their ids are sorted and their rows pooled on a thread of the replica beside
  // the step that runs; rows that its update moves are pooled anew, so that the lookup gives the
  // same bits with and without. Announce a batch once, in the order of the lookups, at most one
  // ahead of the next. What is wrong with it is said by its lookup, and a batch may stay without
  // one. Nothing happens where tables are variables, before the layer is built, and with one
  // worker (num_workers). RuntimeError as for calls, and outside of replicas.
  void prefetch(const Tensors& inputs) override;
  void prefetch(const Tensors& features,
                const std::optional<Nest<std::optional<TensorLike>>>& weights);
  // True with TPUEmbeddingOptions::pipeline_lookups: then fit() calls prefetch().
  bool supports_prefetch() const override;

  // Current values, [rows, dim], in order of first use by a feature. Copies of what the engine
  // holds: not for use inside a training step. Where tables are variables, those are
  // trainable_variables(), in this order.
  std::vector<std::pair<Table, Tensor>> embedding_tables() const;
  // Nothing happens if the table is not this layer's, so that one loop over many tables can serve
  // several layers. ValueError if the shape is not the table's.
  void update_embedding_table(const Table& table, const Tensor& values);

  // Odd ids that lookups have left out or replaced so far (FeatureConfig::id_policy), by the
  // feature's path.
  std::vector<std::pair<std::string, IdCounts>> id_counts() const;
  std::vector<std::string> training_notices() const override;  // says them

  const Nest<FeatureConfig>& feature_config() const { return options_.feature_config; }
  std::vector<StateEntry> state_entries() const override;
  // RuntimeError with an engine.
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override;
  static std::shared_ptr<TPUEmbeddingLayer> from_config(const Config& config);

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  template <class T>
  bool has_weights(const Nest<T>& inputs) const;
  std::vector<Shape> output_shapes(const Specs& inputs) const;

  class Backend;          // how tables are held: lookup, read, write
  class EngineBackend;    // engine and virtual variable
  class VariableBackend;  // one Variable per table
  class V0Backend;        // the same under a TPUStrategy
  static std::unique_ptr<Backend> make_backend(const Options& options, const TableSet& tables,
                                               const Nest<FeatureConfig>& features);

  const Options options_;
  const TableSet tables_;
  const Nest<FeatureConfig> features_;  // feature_config on the layer's own tables
  std::unique_ptr<Backend> backend_;
};

namespace layers {
using TPUEmbedding = LayerHandle<TPUEmbeddingLayer>;
}

}  // namespace keel
