// TPUEmbeddingV0: embedding tables under a TPUStrategy without an embedding engine
// (tf.tpu.experimental.embedding.TPUEmbeddingV0).
#pragma once

#include <keel/layers/embedding/mid_level/variable_embedding.h>

namespace keel::tpu {

// Every replica reads the same tables, which are ordinary trainable variables. Nothing is queued,
// delayed or sharded, and one strategy may have several of these objects. Meant for small tables.
//   auto gradients = tape.gradient(loss, variables);   // of embedding.embedding_tables()
//   sgd->apply_gradients(gradients, variables);        // in each replica; sums over replicas
//
// Lookups are those of an engine, except that dense ids [B, 1] give [B, 1, dim]. Invalid ids are
// errors unless the feature's id_policy allows them, and weights are used unchanged, whatever their
// sign.
// Throws ValueError, naming the feature, for weights of dense ids, of another layout than the ids
// or of a sequence feature; for dense ids, or sparse ids of another rank than 2, of a sequence
// feature; and for ragged ids of another rank than 2 or that do not fit output_shape.
class TPUEmbeddingV0 final : public VariableEmbedding {
 public:
  // Takes the arguments of TPUEmbeddingForServing. Throws RuntimeError unless called under a
  // TPUStrategy.
  explicit TPUEmbeddingV0(const Nest<FeatureConfig>& feature_config,
                          const EmbeddingOptimizer& optimizer = {});
};

}  // namespace keel::tpu
