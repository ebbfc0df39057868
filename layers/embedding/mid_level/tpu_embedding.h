// TPUEmbedding: embedding tables in the engine of an accelerator, with one call for each phase of a
// step (tf.tpu.experimental.embedding.TPUEmbedding).
//
//   const auto scope = strategy.scope();
//   tpu::TPUEmbedding embedding(feature_config, tpu::Adagrad{.learning_rate = 0.1});
//   for (const auto& features : dataset) {
//     embedding.enqueue(features);                               // for all replicas
//     strategy.run([&] {                                         // in each replica
//       GradientTape tape;
//       const Tensors activations = embedding.dequeue();
//       for (const TensorLike& a : flatten(activations)) tape.watch(a.tensor());
//       ...
//       embedding.apply_gradients(gradients);                    // packed like feature_config
//     });
//   }
//
// An object constructed under a TPUStrategy is in accelerator mode. All replicas enqueue a batch,
// dequeue it and, in training, update it once. The strategy's engine holds the tables, and only
// checkpoints read and write them (CheckpointItems::embeddings).
// Otherwise the object is in host mode, for serving and for checkpoints: tables and slots are
// variables, and the calls of a step throw RuntimeError.
//
// Calls that are out of order throw RuntimeError immediately and never block . Calls
// that differ between replicas throw RuntimeError as well. After a failed step, the object drops
// the batches in flight.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <keel/distribute/distributed_dataset.h>
#include <keel/layers/embedding/mid_level/embedding_base.h>

namespace keel {

// A shape; unset if even the rank is unknown.
using OptionalShape = std::optional<Shape>;
// The shapes of inputs, packed like the features.
using InputShapes = Nest<OptionalShape>;

}  // namespace keel

namespace keel::tpu {

// Names the batch of a call. dequeue and apply_gradients take batches that were enqueued with the
// same name.
using CallName = std::optional<std::string>;

// Options of enqueue for one replica.
struct EnqueueOptions {
  FeatureWeights weights = {};  // packed like the features; unset leaves are ones
  // If false, the batch is only looked up. For a named batch this is only a hint: it is a training
  // batch if apply_gradients is called with its name in the same step. Which updates a pipelined
  // lookup sees depends on this flag alone.
  bool training = true;
  CallName name = {};       // unset: the batches without a name
  std::string device = {};  // outside steps: the target core, "/task:0/device:TPU:2"
};
// Options of enqueue for all replicas.
struct EnqueueForAllOptions {
  // By local replica, packed like the features; unset leaves are ones.
  std::optional<distribute::PerReplica<Nest<std::optional<TensorLike>>>> weights = {};
  bool training = true;  // see EnqueueOptions
  CallName name = {};    // unset: the batches without a name
};

// The embedding tables of one feature_config.
class TPUEmbedding final : public EmbeddingBase {
 public:
  // Writes optimizers and names to the user's tables. In accelerator mode,
  // pipeline_execution_with_tensor_core delays the update of a step until after the lookup of the
  // next step, which does not see it.
  // Throws ValueError for a table whose optimizer is not an embedding optimizer, for a table
  // without an optimizer in accelerator mode, and for two tables with the same name.
  TPUEmbedding(const Nest<FeatureConfig>& feature_config, const EmbeddingOptimizer& optimizer,
               bool pipeline_execution_with_tensor_core = false);
  ~TPUEmbedding() override;

  // Creates the tables and, in accelerator mode, the engine. The arguments are the shapes of each
  // replica's inputs, or their number of rows, which is an older form. An input of shape [n] or
  // [n, k] has n samples. Later calls do nothing. enqueue() builds with the shapes of its features
  // if build() was not called. Throws ValueError, naming the feature, for shapes that disagree with
  // its output_shape; if shapes remain unknown; and for a slot factory that returns a tensor.
  // Throws RuntimeError if the strategy has an active engine.
  void build(const std::optional<InputShapes>& per_replica_input_shapes = {},
             std::optional<int64_t> per_replica_batch_size = {});
  void build(int64_t per_replica_batch_size);  // Builds for inputs of this many rows.
  bool built() const override;

  // Enqueues one batch. In a step, the batch is for this replica, and the features must be the
  // step's arguments, unmodified. Outside steps, it is for the core `device`. Builds the object if
  // necessary.
  // Throws RuntimeError in host mode, and inside ops::cond or ops::while_loop in a step. Throws
  // TypeError or ValueError for another structure. Throws ValueError, naming the feature, for a
  // shape that disagrees with the output shape; for tensors on an accelerator; for ids that are not
  // integers or are outside the table; and for weights of dense ids, of another layout or other
  // positions than the ids, NaN or infinite. Throws ValueError for a device that is not a core of
  // the strategy.
  void enqueue(const Tensors& features, const EnqueueOptions& options = {});
  // Enqueues part r of the features for replica r. Call it outside steps.
  void enqueue(const distribute::PerReplica<Tensors>& features,
               const EnqueueForAllOptions& options = {});

  // If `verify` is false, enqueue does not compare shapes. Its features must still give the number
  // of samples of the output shapes, and enqueue throws ValueError if the object is not built.
  void set_verify_output_shapes_on_enqueue(bool verify);

  // Returns the activations of the oldest enqueued batch, packed like feature_config; each has
  // dtype float32 and shape [output shape..., dim]. Call it in a step. Throws RuntimeError in host
  // mode, before build, outside steps, and if no batch is enqueued.
  Tensors dequeue(const CallName& name = {});

  // Updates the tables with the gradients, summed over the replicas, of the oldest batch that was
  // dequeued and not updated. Call it in a step. An absent gradient counts as zeros, with a warning
  // on stderr; some optimizers change tables even for zero gradients.
  // Throws RuntimeError in host mode, before build, outside steps, and if there is no such batch.
  // Throws TypeError or ValueError for another structure. Throws ValueError, naming the feature,
  // for IndexedSlices and for tensors of another shape or dtype.
  void apply_gradients(const Nest<Gradient>& gradients, const CallName& name = {});

  // Returns the tables' variables in host mode; builds the object if necessary. Throws RuntimeError
  // in accelerator mode, where training does not update these variables.
  EmbeddingTables embedding_tables() override;

  // Returns the serialized TPUEmbeddingConfiguration (tpu_embedding_configuration.proto) that the
  // engine was created from. Throws RuntimeError before build and in host mode.
  const std::string& record() const;
  // Returns the counts of dropped and replaced invalid ids, by feature path
  // (FeatureConfig::id_policy). Throws RuntimeError in host mode.
  std::vector<std::pair<std::string, IdCounts>> id_counts() const;

  std::shared_ptr<TrackedTables> tracked() const override;

 protected:
  DynamicTable::Access dynamic_access(int table) const override;
  void count_lookups(bool count) override;
  LookupStatistics statistics(size_t table) const override;

 private:
  class Accelerator;                                 // engine and queues; null in host mode
  Accelerator& accelerator(const char* call) const;  // throws RuntimeError, naming `call`, if null

  std::unique_ptr<Accelerator> accelerator_;
};

}  // namespace keel::tpu
