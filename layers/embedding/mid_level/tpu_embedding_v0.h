// TPUEmbeddingV0: embedding tables under a TPUStrategy without an embedding engine
// (tf.tpu.experimental.embedding.TPUEmbeddingV0).
#pragma once

#include <keel/layers/embedding/mid_level/variable_embedding.h>

namespace keel::tpu {

// Every replica reads the same tables, which are ordinary trainable variables: nothing is queued,
// delayed or sharded, and several objects may live under one strategy. Meant for small tables.
//   auto gradients = tape.gradient(loss, variables);   // of embedding.embedding_tables()
//   sgd->apply_gradients(gradients, variables);        // in each replica; sums over them
//
// Lookups are those of an engine but for dense ids [B, 1], which give [B, 1, dim]: odd ids are
// errors unless the feature's id_policy says otherwise, and weights are used as they are, whatever
// their sign.
// ValueError, with the feature's path, for weights of dense ids, of another kind than the ids or
// of a sequence feature; dense ids, or sparse ones of another rank than 2, for a sequence feature;
// ragged ids of another rank than 2 or that do not fit output_shape.
class TPUEmbeddingV0 final : public VariableEmbedding {
 public:
  // As TPUEmbeddingForServing. RuntimeError unless under a TPUStrategy.
  explicit TPUEmbeddingV0(const Nest<FeatureConfig>& feature_config,
                          const EmbeddingOptimizer& optimizer = {});
};

}  // namespace keel::tpu
