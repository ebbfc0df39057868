// TPUEmbeddingForServing: embedding tables on the host, for serving and for training without an
// accelerator (tf.tpu.experimental.embedding.TPUEmbeddingForServing). Also offers the lookup as a
// function.
#pragma once

#include <utility>
#include <vector>

#include <keel/layers/embedding/mid_level/variable_embedding.h>

namespace keel::tpu {

// Looks up `inputs` in `tables` like TPUEmbeddingForServing::embedding_lookup. The result depends
// only on the arguments and is differentiable with respect to the tables.
// For each feature with a table of D columns:
//   dense [shape...]     a gather, [shape..., D]; the combiner is ignored
//   sparse [..., n]      each row of ids combined, [..., D]. If the feature validates, or the rank
//                        is above 2, negative ids are dropped, and so are weights that are not
//                        positive unless the combiner is sum
//   ragged [rows, (n)]   each row combined, [rows, D], or [output_shape..., D]
//   a sequence feature   [rows, max_sequence_length, D]
// Empty rows, and rows whose weights sum to 0, give zeros.
// Throws ValueError, naming the feature, for a table that is not in `tables`; for weights of dense
// ids, of another layout than the ids or of a sequence feature; for dense ids of a sequence
// feature; and for ids that are not integers or are outside the table. Throws TypeError or
// ValueError for another structure.
Tensors serving_embedding_lookup(const Tensors& inputs, const FeatureWeights& weights,
                                 const EmbeddingTables& tables,
                                 const Nest<FeatureConfig>& feature_config);
// Looks up `inputs` in the given values of tables, for example those that a layer's
// embedding_tables() returns.
Tensors serving_embedding_lookup(const Tensors& inputs, const FeatureWeights& weights,
                                 const std::vector<std::pair<Table, Tensor>>& tables,
                                 const Nest<FeatureConfig>& feature_config);

// The former name of serving_embedding_lookup.
inline Tensors cpu_embedding_lookup(const Tensors& inputs, const FeatureWeights& weights,
                                    const EmbeddingTables& tables,
                                    const Nest<FeatureConfig>& feature_config) {
  return serving_embedding_lookup(inputs, weights, tables, feature_config);
}

// Embedding tables as trainable host variables.
class TPUEmbeddingForServing final : public VariableEmbedding {
 public:
  // `optimizer` applies to tables without their own and determines which slots exist. Unset: no
  // slots. Names and optimizers are written to the user's tables.
  // Throws RuntimeError under a TPUStrategy. Throws ValueError for two tables with the same name,
  // and for an optimizer that is not an embedding optimizer.
  explicit TPUEmbeddingForServing(const Nest<FeatureConfig>& feature_config,
                                  const EmbeddingOptimizer& optimizer = {});
};

}  // namespace keel::tpu
