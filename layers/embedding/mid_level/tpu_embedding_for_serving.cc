#include <algorithm>

#include <keel/distribute/strategy.h>
#include <keel/layers/embedding/mid_level/embedding_base.h>
#include <keel/layers/embedding/tables/internal/host_lookup.h>

namespace keel::tpu {
namespace {

constexpr char kServingCaller[] = "TPUEmbeddingForServing";

Nest<FeatureConfig> outside_tpu(const Nest<FeatureConfig>& features) {
  if (distribute::Strategy::current().is_tpu()) {
    throw RuntimeError(
        kServingCaller,
        ": must be constructed outside the scope of a TPUStrategy; use TPUEmbedding inside it");
  }
  return features;
}

Tensor rows_of(const Variable& table, const Tensor& rows) { return table.read_rows(rows); }
Tensor rows_of(const Tensor& table, const Tensor&) { return table; }

// Looks up in `tables`, which pairs each table with a variable or a tensor.
template <class Values>
Tensors look_up(const Tensors& inputs, const FeatureWeights& weights, const Values& tables,
                const Nest<FeatureConfig>& features) {
  const auto find = [&](const Table& table) {
    return std::ranges::find(tables, table, [](const auto& entry) { return entry.first; });
  };
  for_each_leaf(features, [&](const std::string& path, const FeatureConfig& feature) {
    if (feature.table != nullptr && find(feature.table) != tables.end()) return;
    throw ValueError("serving_embedding_lookup: feature '", path, "' uses table '",
                     feature.table == nullptr ? "" : feature.table->name,
                     "', which is not in `tables`; pass the tables of all features");
  });
  return host_embedding_lookup(
      inputs, weights, features,
      [&](const Table& table, const Tensor& rows) { return rows_of(find(table)->second, rows); });
}

}  // namespace

Tensors serving_embedding_lookup(const Tensors& inputs, const FeatureWeights& weights,
                                 const EmbeddingTables& tables,
                                 const Nest<FeatureConfig>& feature_config) {
  return look_up(inputs, weights, tables, feature_config);
}

Tensors serving_embedding_lookup(const Tensors& inputs, const FeatureWeights& weights,
                                 const std::vector<std::pair<Table, Tensor>>& tables,
                                 const Nest<FeatureConfig>& feature_config) {
  return look_up(inputs, weights, tables, feature_config);
}

TPUEmbeddingForServing::TPUEmbeddingForServing(const Nest<FeatureConfig>& feature_config,
                                               const EmbeddingOptimizer& optimizer)
    : VariableEmbedding(kServingCaller, outside_tpu(feature_config), optimizer,
                        LookupRules::kHost) {}

}  // namespace keel::tpu
