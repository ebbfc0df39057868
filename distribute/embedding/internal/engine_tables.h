// EngineTables: the tables of an EmbeddingEngine as its replicas share them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <keel/distribute/embedding/engine.h>
#include <keel/distribute/embedding/internal/keyed_rounds.h>
#include <keel/distribute/embedding/internal/table_shard.h>
#include <keel/framework/kernels/embedding/row_groups.h>
#include <keel/framework/update_rule.h>

namespace keel::distribute {

// Returns the batch in the form that kernels take.
kernels::Bags bags_of(const FeatureBatch& batch);

// A lookup: its features, with their ids grouped by row if that has been done.
class EmbeddingEngine::Ticket {
 public:
  // In features of tables for unbounded ids, row numbers have replaced the ids.
  std::vector<FeatureBatch> features;
  std::vector<std::shared_ptr<KeyedLookup>> keyed;  // by table; null for static tables
  std::vector<kernels::RowGroups> groups;           // by table; empty if not computed yet
  bool used = false;                                // apply() has been called
};

// The configuration of the tables and the shards that this process holds.
class EngineTables {
 public:
  // Creates the shards [first_shard, first_shard + shards). Throws RuntimeError, naming the table,
  // if there is not enough memory. `group` are the processes that hold the other shards.
  EngineTables(const EngineConfiguration& configuration, int first_shard, int shards,
               ProcessGroup* group);

  const EngineConfiguration& configuration() const { return configuration_; }
  size_t size() const { return configuration_.tables.size(); }
  const EngineTable& operator[](size_t table) const { return configuration_.tables[table]; }
  bool is_updated(size_t table) const { return (*this)[table].update.rule != nullptr; }
  TableShard& shard(size_t table) {
    return keyed_[table] == nullptr ? shards_[table] : keyed_[table]->shard();
  }
  const TableShard& shard(size_t table) const {
    return keyed_[table] == nullptr ? shards_[table] : keyed_[table]->shard();
  }
  // The shards of the static tables; those of other tables have no rows.
  const std::vector<TableShard>& shards() const { return shards_; }
  // Returns the shard; throws RuntimeError unless rows [first, end) are held here.
  TableShard& shard_with(int table, int64_t first, int64_t end);
  const TableShard& shard_with(int table, int64_t first, int64_t end) const;
  // Returns the table if it is one for unbounded ids, else null.
  KeyedTable* keyed(size_t table) { return keyed_[table].get(); }
  const KeyedTable* keyed(size_t table) const { return keyed_[table].get(); }
  // Returns the table if it is one for unbounded ids that is updated, else null.
  const KeyedTable* updated_keyed(size_t table) const {
    return is_updated(table) ? keyed(table) : nullptr;
  }
  bool has_keyed() const { return has_keyed_; }
  // Returns the number below which all row numbers of a table are.
  int64_t row_limit(size_t table) const {
    return keyed_[table] == nullptr ? (*this)[table].rows : keyed_[table]->row_limit();
  }
  // Returns the number below which the row numbers of a ticket are.
  int64_t row_limit(size_t table, const EmbeddingEngine::Ticket& ticket) const {
    return row_limit(table) +
           (keyed_[table] == nullptr ? 0 : std::ssize(ticket.keyed[table]->remote));
  }
  // The row sizes, by table.
  const std::vector<int64_t>& dims() const { return dims_; }
  // A hash of the table's name, from which the bits of stochastic rounding are derived.
  uint64_t rounding_key(size_t table) const { return rounding_keys_[table]; }
  // The label of the collectives of lookups.
  const std::string& label() const { return label_; }

  int table_of(size_t feature) const { return configuration_.features[feature].table_id; }
  std::vector<int> features_of(size_t table) const;
  // Returns the first replica of the host that owns a row. Its process holds the row.
  int replica_of_owner(size_t table, int64_t row) const;

  // Throws ValueError for a wrong number of features and for an id outside its table.
  void check(const std::vector<FeatureBatch>& features) const;
  // Throws the errors of EmbeddingEngine::apply() for gradients and steps.
  void check(const std::vector<FeatureBatch>& features, const std::vector<Tensor>& gradients,
             const std::vector<TableStep>& steps) const;

  // Returns the features of a ticket that belong to a table.
  std::vector<FeatureBatch> batches_of(const EmbeddingEngine::Ticket& ticket, size_t table) const;
  // Replaces the features of tables for unbounded ids by those of their lookups.
  void take_rows(EmbeddingEngine::Ticket& ticket) const;
  // Plans the updates of these tables, then counts and admits their ids. `lookups` has, by table,
  // the lookups of all local replicas and what other processes have sent. Throws CollectiveError,
  // before any table has changed, if a table is full. Collective over processes.
  void admit_keys(const std::vector<KeyedLookups>& lookups);
  // Replaces the row numbers of a ticket by those that its update changes.
  void resolve_keys(EmbeddingEngine::Ticket& ticket) const;
  // Evicts rows at the end of an update. Collective over processes.
  void finish_update();

  // Groups the ids of a batch by row, for each static table that is updated, or for one table.
  void group_ids(const std::vector<FeatureBatch>& features,
                 std::vector<kernels::RowGroups>& groups) const;
  void group_ids(const std::vector<FeatureBatch>& features, size_t table,
                 kernels::RowGroups& groups) const {
    group_ids(features, table, row_limit(table), groups);
  }
  void group_ids(const std::vector<FeatureBatch>& features, size_t table, int64_t row_limit,
                 kernels::RowGroups& groups) const;

 private:
  std::vector<KeyedTable*> updated_keyed_tables() const;

  const EngineConfiguration configuration_;
  const std::string label_;
  std::vector<int64_t> dims_;
  std::vector<uint64_t> rounding_keys_;
  std::vector<TableShard> shards_;
  std::vector<std::unique_ptr<KeyedTable>> keyed_;  // by table; null for static tables
  bool has_keyed_ = false;
};

// The memory of groups that are no longer used, for the groups of later batches of a replica.
class GroupBuffers {
 public:
  // Keeps the memory of `groups`, which become empty.
  void put(std::vector<kernels::RowGroups>& groups) {
    // Three batches at most: prefetched, looked up, and waiting for its update.
    if (!groups.empty() && kept_.size() < 3) kept_.push_back(std::move(groups));
    groups.clear();
  }
  // Returns groups to be overwritten; none if no memory is kept.
  std::vector<kernels::RowGroups> take() {
    if (kept_.empty()) return {};
    std::vector<kernels::RowGroups> out = std::move(kept_.back());
    kept_.pop_back();
    return out;
  }

 private:
  std::vector<std::vector<kernels::RowGroups>> kept_;
};

}  // namespace keel::distribute
