// Lookups in tables that are ordinary tensors: for training under a CPUStrategy, for serving, and
// for tables of a TPUStrategy without an embedding engine.
#pragma once

#include <functional>

#include <keel/layers/embedding/tables/internal/invalid_id_counter.h>
#include <keel/layers/embedding/tables/internal/lookup_counter.h>

namespace keel {

// Returns the value of a table, [vocabulary_size, dim]. The lookup reads only the rows `ids`
// (int64) of it.
using TableLookup = std::function<Tensor(const Table& table, const Tensor& ids)>;

// Selects how a lookup treats invalid ids and sparse inputs.
enum class LookupRules {
  kHost,  // sparse ids follow FeatureConfig::validate_weights_and_indices
  kV0,    // drops nothing, like an engine; a sparse sequence must have rank 2
};

// Options of host_embedding_lookup.
struct HostLookupOptions {
  LookupRules rules = LookupRules::kHost;
  InvalidIdCounter* counter = nullptr;  // if set, counts dropped and replaced ids
  // If set, counts the ids of each table; table_index returns a table's index there.
  LookupCounter* statistics = nullptr;
  std::function<size_t(const Table& table)> table_index = {};
  // Looks up the ids of a table with dynamic ids. Returns rows, and replaces the ids of the bags by
  // numbers of these rows. Required if there is such a table.
  std::function<Tensor(const Table& table, FeatureBags& bags)> look_up_keys = {};
};

// Looks up `features` in tables given by `table_of`. The output is packed like feature_config. For
// each feature:
//   dense ids [shape...]  -> [shape..., dim], not pooled; zeros for an id that is dropped
//   sparse, ragged rows   -> pooled by the table's combiner; zeros for an empty row and for a
//                            divisor of 0; or sequence steps, see FeatureConfig
// The lookup is differentiable with respect to the tables, whose gradients are IndexedSlices, and
// to weights that a tape watches. Symbolic inputs give symbolic outputs. Throws TypeError or
// ValueError for another structure. Throws ValueError, naming the feature, for ids outside the
// table; for weights of dense ids or of sequences; for weights of another layout than the ids; and
// for dense ids of a sequence feature.
Tensors host_embedding_lookup(const Tensors& features, const FeatureWeights& weights,
                              const Nest<FeatureConfig>& feature_config,
                              const TableLookup& table_of, const HostLookupOptions& options = {});

}  // namespace keel
