#include "layers/embedding/table_config.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace keel {
namespace {

void check(const TableConfig& t) {
  if (t.vocabulary_size < 1) {
    throw ValueError("TableConfig ", t.name, ": vocabulary_size must be positive, received ",
                     t.vocabulary_size);
  }
  if (t.dim < 1)
    throw ValueError("TableConfig ", t.name, ": dim must be positive, received ", t.dim);
  combiner_from_name(t.combiner);
}

}  // namespace

kernels::Combiner combiner_from_name(const std::string& name) {
  if (name == "mean") return kernels::Combiner::kMean;
  if (name == "sum") return kernels::Combiner::kSum;
  if (name == "sqrtn") return kernels::Combiner::kSqrtN;
  throw ValueError("TableConfig: combiner must be mean, sum or sqrtn, received '", name, "'");
}

Table make_table(TableConfig config) {
  check(config);
  return std::make_shared<TableConfig>(std::move(config));
}

Initializer table_initializer(const TableConfig& table) {
  if (table.initializer) return *table.initializer;
  return initializers::truncated_normal(0.0, 1.0 / std::sqrt(static_cast<double>(table.dim)));
}

int TableSet::find(const Table& table) const {
  const auto it = std::ranges::find_if(
      tables, [&](const Entry& entry) { return entry.original == table || entry.own == table; });
  return it == tables.end() ? -1 : static_cast<int>(it - tables.begin());
}

Nest<FeatureConfig> TableSet::on_own_tables(const Nest<FeatureConfig>& features,
                                            const std::string& who) const {
  const std::vector<std::string> paths = flatten_paths(features);
  size_t i = 0;
  return map_structure(features, [&](FeatureConfig feature) {
    const std::string& path = paths[i++];
    const int found = find(feature.table);
    if (found < 0) {
      throw ValueError(who, ": feature '", path, "' uses table '",
                       feature.table == nullptr ? "" : feature.table->name,
                       "', which is not one of the layer's");
    }
    feature.table = tables[found].own;
    return feature;
  });
}

TableSet collect_tables(const Nest<FeatureConfig>& features, const TableOptimizer& optimizer) {
  TableSet out;
  for_each_leaf(features, [&](const std::string& path, const FeatureConfig& feature) {
    if (feature.table == nullptr) {
      throw ValueError("FeatureConfig '", path, "': table is not set");
    }
    if (feature.max_sequence_length < 0) {
      throw ValueError("FeatureConfig '", path,
                       "': max_sequence_length must not be negative, "
                       "received ",
                       feature.max_sequence_length);
    }
    if (out.find(feature.table) < 0) {
      check(*feature.table);
      out.tables.push_back(
          {.original = feature.table, .own = std::make_shared<TableConfig>(*feature.table)});
    }
  });
  std::set<std::string> names;
  for (size_t i = 0; i < out.tables.size(); ++i) {
    TableConfig& config = *out.tables[i].own;
    if (!config.optimizer) config.optimizer = optimizer;
    if (config.name.empty()) config.name = "table_" + std::to_string(i);
    if (!names.insert(config.name).second) {
      throw ValueError("TPUEmbedding: two tables are named '", config.name, "'");
    }
  }
  return out;
}

}  // namespace keel
