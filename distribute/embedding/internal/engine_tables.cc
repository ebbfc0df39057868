#include <keel/distribute/embedding/internal/engine_tables.h>

#include <absl/strings/str_format.h>
#include <algorithm>
#include <cmath>

#include <keel/distribute/embedding/internal/row_gradients.h>
#include <keel/distribute/embedding/optimization_parameters_internal.h>
#include <keel/framework/base/internal/memory_error.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/base/profile.h>
#include <keel/framework/kernels/embedding/id_range.h>
#include <keel/framework/update_rule.h>

#include "distribute/embedding/tpu_embedding_configuration.pb.h"

namespace keel::distribute {
namespace {

// Returns the label of lookups, a hash of the shapes of the tables and of their optimizers.
// Processes whose tables differ, for example because each derived its vocabularies from its own
// data, must not exchange ids. Processes with different rules or learning rates must not update
// each other's rows. Table names are not included, because numbers in them may differ.
std::string label_of(const EngineConfiguration& configuration) {
  std::string shapes, optimizers;
  for (const EngineTable& t : configuration.tables) {
    shapes += str(t.rows, ' ', t.dim, ' ');
    try {
      optimizers += write_optimization_parameters(t).SerializeAsString();
    } catch (const ValueError&) {  // the rule cannot be serialized
    }
  }
  const std::hash<std::string> hash;
  return absl::StrFormat("lookup of ids in tables %x with optimizers %x", hash(shapes),
                         hash(optimizers));
}

uint64_t key_of(const std::string& name) {
  uint64_t key = 0;
  for (const char c : name) key = kernels::mixed_key(key, static_cast<unsigned char>(c));
  return key;
}

}  // namespace

kernels::Bags bags_of(const FeatureBatch& batch) {
  return {.ids = batch.ids.data<int64_t>().data(),
          .splits = batch.row_splits ? batch.row_splits.data<int64_t>().data() : nullptr,
          .samples = (batch.row_splits ? batch.row_splits.size() - 1 : batch.ids.size()),
          .weights = batch.weights ? batch.weights.data<float>().data() : nullptr};
}

EngineTables::EngineTables(const EngineConfiguration& configuration, int first_shard, int shards,
                           ProcessGroup* group)
    : configuration_(configuration), label_(label_of(configuration)) {
  const int cores = configuration.num_tensor_cores / configuration.num_hosts;
  for (const EngineTable& t : configuration.tables) {
    const std::vector<Slot> slots =
        t.update.rule == nullptr ? std::vector<Slot>{} : t.update.rule->slots();
    dims_.push_back(t.dim);
    rounding_keys_.push_back(key_of(t.name));
    const LocalRows rows(Partition(t.rows, configuration.sharding()), first_shard / cores,
                         (first_shard + shards) / cores);
    keyed_.push_back(nullptr);
    if (t.dynamic) {
      has_keyed_ = true;
      if (shards != configuration.num_tensor_cores && group == nullptr) {
        throw ValueError("EmbeddingEngine: table '", t.name,
                         "' has dynamic ids and not all shards are held here; set "
                         "LocalShards::group");
      }
      const KeyedPeers peers = group == nullptr || shards == configuration.num_tensor_cores
                                   ? KeyedPeers()
                                   : KeyedPeers(*group, configuration.num_hosts);
      keyed_.back() = allocate_for("TPUEmbedding: table '" + t.name + "'", {1, t.dim}, 0, [&] {
        return KeyedTable::create({.name = t.name,
                                   .dynamic = *t.dynamic,
                                   .dim = t.dim,
                                   .slots = slots,
                                   .storage = t.storage,
                                   .peers = peers});
      });
      shards_.emplace_back(t.dim, slots, LocalRows(Partition(0, {}), 0, 1), t.storage);
      continue;
    }
    const Shape shape = {rows.count(), t.dim};
    const size_t of_weight = t.storage == kernels::StorageType::kFloat32 ? 4 : 2;
    allocate_for(
        "TPUEmbedding: table '" + t.name + "' with " + std::to_string(slots.size()) + " slots",
        shape, bytes_for(shape, static_cast<double>(of_weight + 4 * slots.size())),
        [&] { shards_.emplace_back(t.dim, slots, rows, t.storage); });
  }
}

const TableShard& EngineTables::shard_with(int table, int64_t first, int64_t end) const {
  const LocalRows& rows = shards_.at(table).rows();
  for (int64_t row = first; row < end && !rows.all(); ++row) {
    if (rows.contain(row)) continue;
    throw RuntimeError(
        "EmbeddingEngine: row ", row, " of table '", (*this)[table].name,
        "' is stored by another process; local_rows() returns the rows of this process");
  }
  return shards_[table];
}

TableShard& EngineTables::shard_with(int table, int64_t first, int64_t end) {
  return const_cast<TableShard&>(std::as_const(*this).shard_with(table, first, end));
}

std::vector<int> EngineTables::features_of(size_t table) const {
  std::vector<int> out;
  for (size_t f = 0; f < configuration_.features.size(); ++f) {
    if (table_of(f) == static_cast<int>(table)) out.push_back(static_cast<int>(f));
  }
  return out;
}

int EngineTables::replica_of_owner(size_t table, int64_t row) const {
  const int cores = configuration_.num_tensor_cores / configuration_.num_hosts;
  return shards_[table].rows().partition().owner(row) * cores;
}

void EngineTables::check(const std::vector<FeatureBatch>& features) const {
  if (features.size() != configuration_.features.size()) {
    throw ValueError("EmbeddingEngine: received ", features.size(), " features, expected ",
                     configuration_.features.size());
  }
  for (size_t f = 0; f < features.size(); ++f) {
    const EngineTable& table = (*this)[table_of(f)];
    if (table.dynamic) continue;  // every id is valid; KeyedTable checks the type
    const auto ids = features[f].ids.data<int64_t>();
    if (kernels::all_in_range(ids, table.rows)) continue;
    const auto bad =
        std::ranges::find_if(ids, [&](int64_t id) { return id < 0 || id >= table.rows; });
    throw ValueError("EmbeddingEngine: feature ", f, ": id ", *bad, " at position ",
                     bad - ids.begin(), " is outside table '", table.name, "' of ", table.rows,
                     " rows");
  }
}

void EngineTables::check(const std::vector<FeatureBatch>& features,
                         const std::vector<Tensor>& gradients,
                         const std::vector<TableStep>& steps) const {
  if (gradients.size() != features.size()) {
    throw ValueError("EmbeddingEngine: received ", gradients.size(), " gradients for ",
                     features.size(), " features; pass one for each feature");
  }
  if (steps.size() != size()) {
    throw ValueError("EmbeddingEngine: received ", steps.size(), " steps for ", size(),
                     " tables; pass one for each table");
  }
  for (size_t t = 0; t < steps.size(); ++t) {
    const double rate = steps[t].learning_rate;
    if (std::isfinite(rate) && rate >= 0) continue;
    throw ValueError("EmbeddingEngine: table '", (*this)[t].name,
                     "': learning_rate must be finite and not negative, received ", rate);
  }
  for (size_t f = 0; f < features.size(); ++f) {
    const Tensor& gradient = gradients[f];
    if (!gradient) continue;
    if (gradient.dtype() != DType::kFloat32) {
      throw TypeError("EmbeddingEngine: feature ", f, ": its gradient must be float32, received ",
                      gradient.dtype());
    }
    const Shape shape = {bags_of(features[f]).samples, dims_[table_of(f)]};
    if (gradient.shape() != shape) {
      throw ValueError("EmbeddingEngine: feature ", f, ": its gradient must have shape ", shape,
                       ", received ", gradient.shape());
    }
  }
}

void EngineTables::group_ids(const std::vector<FeatureBatch>& features,
                             std::vector<kernels::RowGroups>& groups) const {
  const profile::Scope scope(profile::Phase::kUpdate, "group ids");
  groups.resize(size());
  parallel_for(static_cast<int64_t>(size()), 1, [&](int64_t first, int64_t end) {
    for (int64_t t = first; t < end; ++t) {
      if (is_updated(t) && keyed(t) == nullptr) group_ids(features, t, groups[t]);
    }
  });
}

void EngineTables::group_ids(const std::vector<FeatureBatch>& features, size_t table,
                             int64_t row_limit, kernels::RowGroups& groups) const {
  std::vector<kernels::Bags> bags;
  for (const int f : features_of(table)) bags.push_back(bags_of(features[f]));
  group_rows(bags, row_limit, groups);
}

std::vector<FeatureBatch> EngineTables::batches_of(const EmbeddingEngine::Ticket& ticket,
                                                   size_t table) const {
  std::vector<FeatureBatch> out;
  for (const int f : features_of(table)) out.push_back(ticket.features[f]);
  return out;
}

std::vector<KeyedTable*> EngineTables::updated_keyed_tables() const {
  std::vector<KeyedTable*> out;
  for (size_t t = 0; t < size(); ++t) {
    if (keyed_[t] != nullptr && is_updated(t)) out.push_back(keyed_[t].get());
  }
  return out;
}

void EngineTables::take_rows(EmbeddingEngine::Ticket& ticket) const {
  for (size_t t = 0; t < size(); ++t) {
    if (keyed(t) == nullptr) continue;
    size_t next = 0;
    for (const int f : features_of(t)) ticket.features[f] = ticket.keyed[t]->features[next++];
  }
}

void EngineTables::admit_keys(const std::vector<KeyedLookups>& lookups) {
  const std::vector<KeyedTable*> tables = updated_keyed_tables();
  std::vector<KeyedLookups> of_tables;
  for (size_t t = 0; t < size(); ++t) {
    if (updated_keyed(t) != nullptr) of_tables.push_back(lookups[t]);
  }
  plan_updates(tables, of_tables);
  parallel_for(std::ssize(tables), 1, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      tables[i]->commit_update();
      // Lookups with features belong to local replicas, which resolve their own.
      for (const auto& lookup : of_tables[i]) {
        if (lookup->is_foreign) tables[i]->resolve(*lookup);
      }
    }
  });
}

void EngineTables::resolve_keys(EmbeddingEngine::Ticket& ticket) const {
  parallel_for(static_cast<int64_t>(size()), 1, [&](int64_t first, int64_t end) {
    for (int64_t t = first; t < end; ++t) {
      if (updated_keyed(t) != nullptr) keyed(t)->resolve(*ticket.keyed[t]);
    }
  });
  take_rows(ticket);
}

void EngineTables::finish_update() { finish_updates(updated_keyed_tables()); }

}  // namespace keel::distribute
