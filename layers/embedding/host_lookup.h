// Lookups in ordinary tensors: training under a CPUStrategy, and serving.
#pragma once

#include <functional>

#include "layers/embedding/bags.h"

namespace keel {

// Value of a table, [vocabulary_size, dim].
using TableLookup = std::function<Tensor(const Table& table)>;

// Per feature, packed like feature_config:
//   dense ids [shape...]  -> [shape..., dim], no pooling
//   sparse, ragged rows   -> pooled by the table's combiner; zeros for an empty row and where the
//                            divisor is 0; or sequence steps, see FeatureConfig
// Differentiable with respect to the tables; gradients are IndexedSlices. Symbolic inputs give
// symbolic results.
// `weights` is packed like feature_config; an empty leaf means ones.
// TypeError and ValueError for other structures; ValueError, with the feature's path, for ids
// outside the table, weights for dense ids or sequences, dense ids for a sequence feature.
Tensors host_embedding_lookup(const Tensors& features,
                              const std::optional<Nest<std::optional<TensorLike>>>& weights,
                              const Nest<FeatureConfig>& feature_config,
                              const TableLookup& table_of);

}  // namespace keel
