// TPUEmbeddingV2: embedding tables on the sparse cores of an accelerator, looked up by calls
// (tf.tpu.experimental.embedding.TPUEmbeddingV2).
//
//   const auto scope = strategy.scope();
//   tpu::TPUEmbeddingV2 embedding(feature_config, tpu::Adagrad{.learning_rate = 0.1});
//   strategy.run([&] {                                         // in each replica
//     GradientTape tape;
//     const auto [activations, preserved] = embedding(features);
//     for (const TensorLike& a : flatten(activations)) tape.watch(a.tensor());
//     ...
//     embedding.apply_gradients(gradients, preserved);         // packed like feature_config
//   });
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include <keel/layers/embedding/distributed/distributed_config.h>
#include <keel/layers/embedding/mid_level/tpu_embedding.h>

namespace keel::tpu {

// The limits and the initialization of tables on sparse cores. Hardware has buffers of the sizes of
// the limits; this engine has none, so that they only decide which batches are refused or lose ids.
struct SparseCoreEmbeddingConfig {
  bool disable_table_stacking = false;  // accepted; stacking changes no result
  // The average number of ids that one sample of a feature may have: a table may get this number
  // times its samples from the batch of one replica.
  int64_t max_ids_per_chip_per_sample = 64;
  // By table name: the ids that the batch of one replica may send to one sparse core. A table
  // without an entry has no such limit.
  std::optional<std::map<std::string, int64_t>> max_ids_per_table = {};
  // The same for distinct ids.
  std::optional<std::map<std::string, int64_t>> max_unique_ids_per_table = {};
  // If true, ids beyond a limit are dropped and counted. Otherwise they are errors (ValueError).
  bool allow_id_dropping = false;
  bool initialize_tables_on_host = true;          // accepted; values do not depend on it
  bool enable_fast_table_initialization = false;  // accepted; values do not depend on it
};

// What apply_gradients() needs of a lookup. Handles may be copied; all copies are one lookup.
class PreservedResult {
 public:
  PreservedResult() = default;  // of no lookup

 private:
  friend class TPUEmbeddingV2;
  struct State;
  std::shared_ptr<State> state_;
};

// The result of a lookup.
struct EmbeddingResult {
  Tensors activations;        // packed like feature_config; float32, [output shape..., dim]
  PreservedResult preserved;  // for apply_gradients()
};

// The embedding tables of one feature_config. Lookups and updates are those of TPUEmbedding; the
// caller passes what belongs together instead of the order of calls.
class TPUEmbeddingV2 final : public EmbeddingBase {
 public:
  // Writes optimizers and names to the user's tables. pipeline_execution_with_tensor_core delays
  // each update until after the next lookup. Throws RuntimeError unless called under a TPUStrategy;
  // outside of one, use TPUEmbeddingForServing. Throws ValueError for a table without an embedding
  // optimizer, for two tables with the same name, and for limits that are not positive or name an
  // unknown table.
  TPUEmbeddingV2(const Nest<FeatureConfig>& feature_config, const EmbeddingOptimizer& optimizer,
                 bool pipeline_execution_with_tensor_core = false,
                 const SparseCoreEmbeddingConfig& sparse_core_embedding_config = {});
  ~TPUEmbeddingV2() override;

  // Creates the tables for inputs of these shapes in each replica; see TPUEmbedding::build(). The
  // first lookup builds for the shapes of its features, and later batches must have the same number
  // of samples. Later calls do nothing.
  void build(const std::optional<InputShapes>& per_replica_input_shapes = {});
  bool built() const override;

  // Looks up one batch. Call it in each replica of a step, in the same order. Throws TypeError or
  // ValueError for another structure. Throws ValueError, naming feature or table, for a shape that
  // disagrees with the output shape, for ids outside their table, for weights that do not fit, and
  // for ids beyond a limit unless they may be dropped. Throws RuntimeError outside of replicas.
  EmbeddingResult embedding_lookup(const Tensors& features, const FeatureWeights& weights = {});
  // Same as embedding_lookup().
  EmbeddingResult operator()(const Tensors& features, const FeatureWeights& weights = {}) {
    return embedding_lookup(features, weights);
  }

  // Updates the tables with the gradients of a lookup's activations, summed over the replicas. A
  // lookup without this call is one for inference. An absent gradient counts as zeros. Throws
  // RuntimeError outside of replicas, for a result of another object or of no lookup, and for one
  // that was applied before. Throws TypeError or ValueError for another structure, and ValueError,
  // naming the feature, for IndexedSlices and for tensors of another shape or dtype.
  void apply_gradients(const Nest<Gradient>& gradients, const PreservedResult& preserved);

  // Throws RuntimeError: the tables are not variables. Use table_values().
  EmbeddingTables embedding_tables() override;
  // Returns copies of the tables by name, [vocabulary_size, dim]. Call it outside of steps. Throws
  // RuntimeError before build.
  std::map<std::string, Tensor> table_values() const;

  // Returns the demand of the lookups and the dropped ids, by table name. Tables without an entry
  // in the limits per table report the ids that the limit per sample dropped only.
  std::map<std::string, IdStatistics> id_statistics() const;
  // Returns the arguments of the constructor.
  const SparseCoreEmbeddingConfig& sparse_core_embedding_config() const;

  std::shared_ptr<TrackedTables> tracked() const override;

 protected:
  void count_lookups(bool count) override;
  LookupStatistics statistics(size_t table) const override;

 private:
  class Accelerator;
  std::unique_ptr<Accelerator> accelerator_;
};

}  // namespace keel::tpu
