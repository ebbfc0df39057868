#include <keel/layers/embedding/mid_level/variable_embedding.h>

#include <keel/autodiff/tape.h>

namespace keel::tpu {

VariableEmbedding::VariableEmbedding(const char* caller, const Nest<FeatureConfig>& feature_config,
                                     const EmbeddingOptimizer& optimizer, LookupRules rules)
    : EmbeddingBase(caller, feature_config, optimizer, true),
      rules_(rules),
      tally_(flatten_paths(feature_config).size()) {}

void VariableEmbedding::build() {
  const NoGradient pause;
  host_tables().build();
}

Tensors VariableEmbedding::embedding_lookup(const Tensors& features,
                                            const FeatureWeights& weights) {
  build();
  const auto table_of = [this](const Table& table, const Tensor& rows) {
    return host_tables().parameters()[table_set().find(table)].read_rows(rows);
  };
  Tensors found = host_embedding_lookup(features, weights, feature_config(), table_of,
                                        {.rules = rules_, .tally = &tally_});
  warn_once(features);
  return found;
}

void VariableEmbedding::warn_once(const Tensors& features) {
  if (warned_.exchange(true)) return;
  const std::vector<FeatureConfig> configs = flatten(feature_config());
  size_t f = 0;
  for_each_leaf(features, [&](const std::string& path, const TensorLike& input) {
    warn_of_unused_length(path, configs[f++], input.spec());
  });
}

const std::map<std::string, Variable>& VariableEmbedding::slots(const Table& table) const {
  const int found = table_set().find(table);
  if (found < 0)
    throw ValueError(
        "VariableEmbedding.slots: the table belongs to another object; pass a table of this "
        "object's feature_config");
  if (!built())
    throw RuntimeError("VariableEmbedding.slots: the object is not built; call build first");
  return host_tables().slots()[found];
}

std::vector<std::pair<std::string, IdCounts>> VariableEmbedding::id_counts() const {
  std::vector<std::pair<std::string, IdCounts>> out;
  for (const std::string& path : flatten_paths(feature_config())) {
    out.emplace_back(path, tally_.counts(out.size()));
  }
  return out;
}

}  // namespace keel::tpu
