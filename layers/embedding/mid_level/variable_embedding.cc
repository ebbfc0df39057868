// VariableEmbedding of embedding_base.h.
#include <atomic>

#include <keel/autodiff/tape.h>
#include <keel/layers/embedding/mid_level/embedding_base.h>
#include <keel/layers/embedding/tables/internal/bags.h>
#include <keel/layers/embedding/tables/internal/host_lookup.h>
#include <keel/layers/embedding/tables/internal/host_tables.h>

namespace keel::tpu {

struct VariableEmbedding::Lookups {
  Lookups(LookupRules rules_of_lookups, size_t features, size_t tables)
      : rules(rules_of_lookups), invalid_ids(features), counter(tables) {}

  const LookupRules rules;
  InvalidIdCounter invalid_ids;
  LookupCounter counter;
  std::atomic<bool> counts = false;
  std::atomic<bool> warned = false;
};

VariableEmbedding::VariableEmbedding(const char* caller, const Nest<FeatureConfig>& feature_config,
                                     const EmbeddingOptimizer& optimizer, LookupRules rules)
    : EmbeddingBase(caller, feature_config, optimizer, true),
      lookups_(std::make_unique<Lookups>(rules, flatten_paths(feature_config).size(),
                                         table_set().tables.size())) {}

VariableEmbedding::~VariableEmbedding() = default;

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
  Tensors found = host_embedding_lookup(
      features, weights, feature_config(), table_of,
      {.rules = lookups_->rules,
       .counter = &lookups_->invalid_ids,
       .statistics = lookups_->counts ? &lookups_->counter : nullptr,
       .table_index = [this](const Table& table) -> size_t { return table_set().find(table); },
       .look_up_keys =
           [this](const Table& table, FeatureBags& bags) {
             return host_tables().keyed(table_set().find(table))->look_up(bags);
           }});
  warn_once(features);
  return found;
}

void VariableEmbedding::count_lookups(bool count) { lookups_->counts = count; }

LookupStatistics VariableEmbedding::statistics(size_t table) const {
  return lookups_->counter.statistics(table);
}

void VariableEmbedding::warn_once(const Tensors& features) {
  if (lookups_->warned.exchange(true)) return;
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
    out.emplace_back(path, lookups_->invalid_ids.counts(out.size()));
  }
  return out;
}

}  // namespace keel::tpu
