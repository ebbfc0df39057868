// TPUEmbeddingForServing: embedding tables on the host, for serving and for training without an
// accelerator (tf.tpu.experimental.embedding.TPUEmbeddingForServing), and the lookup by itself.
#pragma once

#include <utility>
#include <vector>

#include <keel/layers/embedding/mid_level/variable_embedding.h>

namespace keel::tpu {

// Looks `inputs` up in `tables`, as TPUEmbeddingForServing does in its own. A function of its
// arguments alone, differentiable with respect to the tables.
// Per feature with a table of D columns:
//   dense [shape...]     a gather, [shape..., D]; the combiner does not count
//   sparse [..., n]      each row of ids combined, [..., D]. If the feature validates, or the rank
//                        is above 2, ids below 0 are left out, and so are weights that are not
//                        positive unless the combiner is sum
//   ragged [rows, (n)]   each row combined, [rows, D], or [output_shape..., D]
//   a sequence feature   [rows, max_sequence_length, D]
// Rows of nothing, and of weights whose sum is 0, are zeros.
// ValueError, with the feature's path, for a table that is not in `tables`, weights for dense ids,
// of another kind than the ids or for a sequence feature, dense ids for a sequence feature, ids
// that are no integers or outside the table. TypeError and ValueError for other structures.
Tensors serving_embedding_lookup(const Tensors& inputs, const FeatureWeights& weights,
                                 const EmbeddingTables& tables,
                                 const Nest<FeatureConfig>& feature_config);
// In tables of now, such as the layer's embedding_tables() gives.
Tensors serving_embedding_lookup(const Tensors& inputs, const FeatureWeights& weights,
                                 const std::vector<std::pair<Table, Tensor>>& tables,
                                 const Nest<FeatureConfig>& feature_config);

// The former name.
inline Tensors cpu_embedding_lookup(const Tensors& inputs, const FeatureWeights& weights,
                                    const EmbeddingTables& tables,
                                    const Nest<FeatureConfig>& feature_config) {
  return serving_embedding_lookup(inputs, weights, tables, feature_config);
}

class TPUEmbeddingForServing final : public VariableEmbedding {
 public:
  // `optimizer` is for tables without their own and decides what slots there are; unset: none.
  // Names and optimizers are written into the user's tables.
  // RuntimeError under a TPUStrategy; ValueError for two tables of one name, and for an optimizer
  // that is no embedding optimizer.
  explicit TPUEmbeddingForServing(const Nest<FeatureConfig>& feature_config,
                                  const EmbeddingOptimizer& optimizer = {});
};

}  // namespace keel::tpu
