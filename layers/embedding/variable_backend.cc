#include <keel/distribute/strategy.h>
#include <keel/layers/embedding/internal/backend.h>

namespace keel {
namespace {

// Returns the tables without their Keras optimizers: the layer creates and saves the slots of
// embedding optimizers, and a Keras optimizer creates and saves its own.
TableSet with_own_slots(const TableSet& tables) {
  TableSet out = tables;
  for (TableSet::Entry& entry : out.tables) {
    if (!entry.own->optimizer || entry.own->optimizer->source == nullptr) continue;
    entry.own = std::make_shared<TableConfig>(*entry.own);
    entry.own->optimizer = {};
  }
  return out;
}

}  // namespace

TPUEmbeddingLayer::VariableBackend::VariableBackend(const TableSet& tables,
                                                    const Nest<FeatureConfig>& config,
                                                    bool counts_lookups, LookupRules rules)
    : Backend(tables),
      rules_(rules),
      counts_lookups_(counts_lookups),
      invalid_ids_(flatten_paths(config).size()),
      lookup_counter_(tables.tables.size()),
      host_tables_(std::make_shared<HostTables>(with_own_slots(tables))) {}

distribute::KeyedTable& TPUEmbeddingLayer::VariableBackend::keyed_table(int table, bool) const {
  return host_tables_->keyed(static_cast<size_t>(table))->table();
}

std::vector<Variable> TPUEmbeddingLayer::VariableBackend::build(const std::vector<Shape>&) {
  host_tables_->build();
  return host_tables_->parameters();
}

void TPUEmbeddingLayer::VariableBackend::check_strategy() const {
  if (distribute::Strategy::current().is_tpu()) {
    throw RuntimeError(
        "TPUEmbedding: the layer was created outside of a TPUStrategy and is called under one; "
        "create it in the scope of the strategy");
  }
}

Tensors TPUEmbeddingLayer::VariableBackend::lookup(const Tensors& features,
                                                   const FeatureWeights& weights,
                                                   const Nest<FeatureConfig>& config) {
  return host_embedding_lookup(
      features, weights, config,
      [this](const Table& table, const Tensor& ids) {
        return host_tables_->parameters()[tables_.find(table)].read_rows(ids);
      },
      {.rules = rules_,
       .counter = &invalid_ids_,
       .statistics = counts_lookups_ ? &lookup_counter_ : nullptr,
       .table_index =
           [this](const Table& table) { return static_cast<size_t>(tables_.find(table)); },
       .look_up_keys =
           [this](const Table& table, FeatureBags& bags) {
             return host_tables_->keyed(tables_.find(table))->look_up(bags);
           }});
}

Tensor TPUEmbeddingLayer::VariableBackend::read(int table) const {
  return host_tables_->parameters()[table].read();
}

void TPUEmbeddingLayer::VariableBackend::write(int table, const Tensor& values) {
  host_tables_->parameters()[table].assign(values);
}

std::vector<StateEntry> TPUEmbeddingLayer::VariableBackend::state_entries() const {
  std::vector<StateEntry> out;
  if (!host_tables_->built()) return out;
  for (size_t t = 0; t < tables_.tables.size(); ++t) {
    const TableConfig& table = *tables_.tables[t].own;
    if (!table.dynamic) continue;
    for (StateEntry& entry : keyed_entries(table.name, host_tables_->keyed(t))) {
      out.push_back(std::move(entry));
    }
  }
  for (StateEntry& entry : host_tables_->state_entries()) {
    // The tables themselves are weights of the layer, which lists them.
    if (entry.kind == StateEntry::Kind::kSlot) out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace keel
