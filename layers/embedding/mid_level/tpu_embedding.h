// TPUEmbedding: embedding tables in the engine of an accelerator, one call for each phase of a step
// (tf.tpu.experimental.embedding.TPUEmbedding).
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
// Made under a TPUStrategy it is in accelerator mode: a batch is enqueued, dequeued and, if it is
// for training, updated once, all replicas alike. Tables are what the strategy's engine holds: only
// checkpoints read and write them (CheckpointItems::embeddings). Elsewhere it is in host mode:
// tables and slots are variables, for serving and for checkpoints, and the calls of a step are
// RuntimeErrors.
//
// Calls out of order are RuntimeErrors at once, never a wait (call_order.h); so are different calls
// in different replicas. After a step that failed, the batches in flight are forgotten.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <keel/distribute/per_replica.h>
#include <keel/layers/embedding/mid_level/embedding_base.h>
#include <keel/layers/embedding/mid_level/output_shapes.h>
#include <keel/layers/embedding/tables/engine_session.h>

namespace keel::tpu {

// Tags the calls about one batch. dequeue and apply_gradients take batches of their own name.
using CallName = std::optional<std::string>;

struct EnqueueOptions {
  FeatureWeights weights = {};  // packed like the features; unset leaves are ones
  // False: the batch is only looked up. With a name this is only expected: the batch is a training
  // batch if apply_gradients of that name follows in the step. What a pipelined lookup sees goes by
  // this flag alone.
  bool training = true;
  CallName name = {};
  std::string device = {};  // outside steps: the core to enqueue for, "/task:0/device:TPU:2"
};
struct EnqueueForAllOptions {
  std::optional<distribute::PerReplica<Nest<std::optional<TensorLike>>>> weights = {};
  bool training = true;
  CallName name = {};
};

class TPUEmbedding final : public EmbeddingBase {
 public:
  // Writes optimizers and names into the user's tables. pipeline_execution_with_tensor_core: the
  // update of a step runs after the lookup of the next, which does not see it; in accelerator mode.
  // ValueError for a table whose optimizer is no embedding optimizer, or none in accelerator mode,
  // and for two tables of one name.
  TPUEmbedding(const Nest<FeatureConfig>& feature_config, const EmbeddingOptimizer& optimizer,
               bool pipeline_execution_with_tensor_core = false);
  ~TPUEmbedding() override;

  // Makes the tables, and in accelerator mode the engine, for inputs of these shapes in each
  // replica (see OutputShapes), or of this many rows, which is an older form. Does nothing the
  // second time; enqueue does it by the shapes of its features.
  // ValueError as OutputShapes says, or if the shapes are not all defined then; for a slot factory
  // that gives a tensor; RuntimeError if the strategy has a live engine.
  void build(const std::optional<InputShapes>& per_replica_input_shapes = {},
             std::optional<int64_t> per_replica_batch_size = {});
  void build(int64_t per_replica_batch_size);
  bool built() const override;

  // One batch. In a step: this replica's; the features are those that the step was given, as it got
  // them. Outside: for the core `device`. Builds the object if need be.
  // RuntimeError in host mode, and in a function of ops::cond or ops::while_loop in a step.
  // TypeError and ValueError for other structures. ValueError, with the feature's path, for a shape
  // that disagrees with the output shape, for tensors of an accelerator, and for weights and ids as
  // to_bags says; for a device that is no core of the strategy.
  void enqueue(const Tensors& features, const EnqueueOptions& options = {});
  // Outside steps: part r of the features for replica r.
  void enqueue(const distribute::PerReplica<Tensors>& features,
               const EnqueueForAllOptions& options = {});

  // False: enqueue leaves out the comparison of shapes; what it is given must still be as many
  // samples as the output shapes. An object that is not built is a ValueError then.
  void set_verify_output_shapes_on_enqueue(bool verify);

  // In a step. Activations of the oldest batch, packed like feature_config, each float32
  // [output shape..., dim]. RuntimeError in host mode, before build, outside steps, and if no batch
  // is enqueued.
  Tensors dequeue(const CallName& name = {});

  // In a step: updates the tables by the gradients of the oldest batch that was dequeued and not
  // updated, summed over the replicas. A gradient that is none counts as zeros, which some
  // optimizers act on, and is said on stderr.
  // RuntimeError in host mode, before build, outside steps, and if there is no such batch.
  // TypeError and ValueError for another structure; ValueError, with the feature's path, for slices
  // and tensors of another shape or dtype.
  void apply_gradients(const Nest<Gradient>& gradients, const CallName& name = {});

  // Host mode: builds if need be. RuntimeError in accelerator mode, where the variables would not
  // be what is trained.
  EmbeddingTables embedding_tables() override;

  // The serialized TPUEmbeddingConfiguration that the engine was made from, for
  // distribute::parse_engine_configuration and to_text. RuntimeError before build and in host mode.
  const std::string& record() const;
  // Odd ids met so far, by the feature's path (FeatureConfig::id_policy).
  std::vector<std::pair<std::string, IdCounts>> id_counts() const;

  std::shared_ptr<TrackedTables> tracked() const override;

 private:
  class Accelerator;                                 // engine and queues; null in host mode
  Accelerator& accelerator(const char* call) const;  // RuntimeError, naming `call`, if null

  std::unique_ptr<Accelerator> accelerator_;
};

}  // namespace keel::tpu
