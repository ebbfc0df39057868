// EmbeddingBase: what TPUEmbedding, TPUEmbeddingForServing and TPUEmbeddingV0 have in common:
// features, the tables that they name, these as variables of the host, and their place in
// checkpoints.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <keel/layers/embedding/tables/host_tables.h>

namespace keel::tpu {

// A table's variable for each table, in table order.
using EmbeddingTables = std::vector<std::pair<Table, Variable>>;

class EmbeddingBase {
 public:
  virtual ~EmbeddingBase() = default;
  EmbeddingBase(const EmbeddingBase&) = delete;
  EmbeddingBase& operator=(const EmbeddingBase&) = delete;

  const Nest<FeatureConfig>& feature_config() const { return feature_config_; }
  const TableSet& table_set() const { return host_tables_->tables(); }
  virtual bool built() const { return host_tables_->built(); }

  // Makes the tables' variables if that has not been done.
  virtual EmbeddingTables embedding_tables();

  // For CheckpointItems::embeddings.
  virtual std::shared_ptr<TrackedTables> tracked() const { return host_tables_; }
  operator std::shared_ptr<TrackedTables>() const { return tracked(); }  // NOLINT: implicit

 protected:
  // Writes optimizers and names into the user's tables; see adopt_tables. ValueError, naming
  // `caller`, unless each table has an embedding optimizer, its own or `optimizer`; or none, where
  // `optimizer_may_be_unset`. Nothing has been written then.
  EmbeddingBase(const char* caller, const Nest<FeatureConfig>& feature_config,
                const EmbeddingOptimizer& optimizer, bool optimizer_may_be_unset);

  HostTables& host_tables() const { return *host_tables_; }

 private:
  const Nest<FeatureConfig> feature_config_;
  const std::shared_ptr<HostTables> host_tables_;
};

}  // namespace keel::tpu
