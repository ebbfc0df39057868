// EmbeddingBase: common base of TPUEmbedding, TPUEmbeddingForServing and TPUEmbeddingV0. Holds the
// features, their tables, the host variables of the tables, and their checkpoint entries.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <keel/layers/embedding/tables/host_tables.h>

namespace keel::tpu {

// Each table with its variable, in table order.
using EmbeddingTables = std::vector<std::pair<Table, Variable>>;

// A feature_config with its tables as host variables.
class EmbeddingBase {
 public:
  virtual ~EmbeddingBase() = default;
  EmbeddingBase(const EmbeddingBase&) = delete;
  EmbeddingBase& operator=(const EmbeddingBase&) = delete;

  // Accessors: the features, their tables, and whether the tables exist.
  const Nest<FeatureConfig>& feature_config() const { return feature_config_; }
  const TableSet& table_set() const { return host_tables_->tables(); }
  virtual bool built() const { return host_tables_->built(); }

  // Returns the tables' variables. Creates them at the first call.
  virtual EmbeddingTables embedding_tables();

  // Returns the tables for CheckpointItems::embeddings.
  virtual std::shared_ptr<TrackedTables> tracked() const { return host_tables_; }
  operator std::shared_ptr<TrackedTables>() const { return tracked(); }  // NOLINT: implicit

 protected:
  // Writes optimizers and names to the user's tables; see adopt_tables. Throws ValueError, naming
  // `caller`, unless each table has an embedding optimizer, its own or `optimizer`. If
  // `optimizer_may_be_unset`, a table may have none. After an error nothing has been written.
  EmbeddingBase(const char* caller, const Nest<FeatureConfig>& feature_config,
                const EmbeddingOptimizer& optimizer, bool optimizer_may_be_unset);

  HostTables& host_tables() const { return *host_tables_; }

 private:
  const Nest<FeatureConfig> feature_config_;
  const std::shared_ptr<HostTables> host_tables_;
};

}  // namespace keel::tpu
