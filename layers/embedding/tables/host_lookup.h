// Lookups in tables that are ordinary tensors: training under a CPUStrategy, serving, and tables
// that a TPUStrategy holds without an embedding engine.
#pragma once

#include <functional>

#include <keel/layers/embedding/tables/invalid_id_counter.h>

namespace keel {

// Value of a table, [vocabulary_size, dim], of which the rows `ids`, int64, are looked at.
using TableLookup = std::function<Tensor(const Table& table, const Tensor& ids)>;

enum class LookupRules {
  kHost,  // sparse ids are validated as FeatureConfig says
  kV0,    // nothing is left out, as on an engine; a sparse sequence must have rank 2
};

struct HostLookupOptions {
  LookupRules rules = LookupRules::kHost;
  InvalidIdCounter* tally = nullptr;  // odd ids that are dropped or replaced are added, if given
};

// Per feature, packed like feature_config:
//   dense ids [shape...]  -> [shape..., dim], no pooling; zeros for an id that is dropped
//   sparse, ragged rows   -> pooled by the table's combiner; zeros for an empty row and where the
//                            divisor is 0; or sequence steps, see FeatureConfig
// Differentiable with respect to the tables; gradients are IndexedSlices. Symbolic inputs give
// symbolic results.
// TypeError and ValueError for other structures; ValueError, with the feature's path, for ids
// outside the table, weights for dense ids, of another kind than the ids or for sequences, and
// dense ids for a sequence feature.
Tensors host_embedding_lookup(const Tensors& features, const FeatureWeights& weights,
                              const Nest<FeatureConfig>& feature_config,
                              const TableLookup& table_of, const HostLookupOptions& options = {});

}  // namespace keel
