#include <keel/layers/embedding/mid_level/embedding_base.h>

#include <keel/layers/embedding/tables/internal/host_tables.h>
#include <keel/layers/embedding/tables/internal/kernel_options.h>

namespace keel::tpu {
namespace {

// Throws, naming the class that the user passed, unless every table has an embedding optimizer.
void check_optimizers(const char* caller, const TableSet& tables, bool may_be_unset) {
  for (const TableSet::Entry& entry : tables.tables) {
    const EmbeddingOptimizer& optimizer = entry.own->optimizer;
    if (!optimizer) {
      if (may_be_unset || !entry.own->trainable) continue;
      throw ValueError(caller, ": table '", entry.own->name,
                       "' requires an embedding optimizer under a TPUStrategy, received none; set "
                       "TableConfig::optimizer");
    }
    if (optimizer->v1_parameters || optimizer->source != nullptr) {
      throw ValueError(caller, ": table '", entry.own->name,
                       "' requires an embedding optimizer (tpu::SGD, Adagrad, Adam, FTRL, "
                       "AdagradMomentum), received ",
                       optimizer->source != nullptr ? "the Keras optimizer " : "",
                       optimizer->class_name);
    }
  }
}

TableSet adopt(const char* caller, const Nest<FeatureConfig>& features,
               const EmbeddingOptimizer& optimizer, bool may_be_unset) {
  // Check copies first, so that an error leaves the user's tables unchanged.
  check_optimizers(caller, collect_tables(features, optimizer), may_be_unset);
  return adopt_tables(features, optimizer);
}

}  // namespace

EmbeddingBase::EmbeddingBase(const char* caller, const Nest<FeatureConfig>& feature_config,
                             const EmbeddingOptimizer& optimizer, bool optimizer_may_be_unset)
    : feature_config_(feature_config),
      host_tables_(std::make_shared<HostTables>(
          adopt(caller, feature_config, optimizer, optimizer_may_be_unset))) {}

const TableSet& EmbeddingBase::table_set() const { return host_tables_->tables(); }
bool EmbeddingBase::built() const { return host_tables_->built(); }
std::shared_ptr<TrackedTables> EmbeddingBase::tracked() const { return host_tables_; }

void EmbeddingBase::set_collect_statistics(bool collect) {
  count_lookups(collect);
  collects_statistics_ = collect;
}

std::map<std::string, LookupStatistics> EmbeddingBase::lookup_statistics() const {
  if (!collects_statistics_) {
    throw RuntimeError(
        "lookup_statistics: no statistics are collected; call "
        "set_collect_statistics(true) before the lookups");
  }
  std::map<std::string, LookupStatistics> out;
  for (size_t t = 0; t < table_set().tables.size(); ++t) {
    out.emplace(table_set().tables[t].own->name, statistics(t));
  }
  return out;
}

DynamicTable EmbeddingBase::dynamic_table(const Table& table) const {
  const int found = find_dynamic(table_set(), table, "the object");
  if (!built()) throw RuntimeError("dynamic_table: the object is not built; call build first");
  return DynamicTable(dynamic_access(found));
}

DynamicTable::Access EmbeddingBase::dynamic_access(int table) const {
  return [keyed = host_tables_->keyed(static_cast<size_t>(table))](
             bool) -> distribute::KeyedTable& { return keyed->table(); };
}

EmbeddingTables EmbeddingBase::embedding_tables() {
  host_tables_->build();
  EmbeddingTables out;
  for (size_t t = 0; t < table_set().tables.size(); ++t) {
    out.emplace_back(table_set().tables[t].own, host_tables_->parameters()[t]);
  }
  return out;
}

}  // namespace keel::tpu
