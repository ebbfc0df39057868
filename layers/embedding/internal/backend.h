// Storage backends of the TPUEmbedding layer. Private to the layer.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <keel/layers/embedding/tables/internal/engine_session.h>
#include <keel/layers/embedding/tables/internal/host_lookup.h>
#include <keel/layers/embedding/tables/internal/host_tables.h>
#include <keel/layers/embedding/tpu_embedding.h>

namespace keel {

// Owns the tables of one layer: builds, looks up, reads and writes them.
class TPUEmbeddingLayer::Backend {
 public:
  explicit Backend(const TableSet& tables) : tables_(tables) {}
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  // Creates the tables. Returns the variables that represent them in the layer: the tables
  // themselves, or the virtual variable. `output_shapes` are the activations' shapes without dim,
  // by feature.
  virtual std::vector<Variable> build(const std::vector<Shape>& output_shapes) = 0;
  // Returns true if the last dimension of a dense input must be 1 and is dropped.
  virtual bool pools_dense() const = 0;
  // Throws RuntimeError unless the current strategy is of the kind that this backend supports.
  virtual void check_strategy() const = 0;
  // Looks up one batch of features packed like `config`. The result has the same structure.
  virtual Tensors lookup(const Tensors& features, const FeatureWeights& weights,
                         const Nest<FeatureConfig>& config) = 0;

  // Returns true if prefetch() starts any work.
  virtual bool supports_prefetch() const { return false; }
  // Starts the lookup of a batch that this replica will look up next.
  virtual void prefetch(const Tensors&, const FeatureWeights&) {}

  // Returns the table as a tensor. The result is differentiable if the table is a variable.
  virtual Tensor read(int table) const = 0;
  // Replaces the values of a table.
  virtual void write(int table, const Tensor& values) = 0;
  // Returns a table with dynamic ids, after pending updates unless `drain` is false.
  virtual distribute::KeyedTable& keyed_table(int table, bool drain) const = 0;
  // Returns the state that files and checkpoints keep and that no variable holds.
  virtual std::vector<StateEntry> state_entries() const { return {}; }
  // Returns the invalid ids that lookups of this feature have dropped or replaced.
  virtual IdCounts invalid_ids(size_t feature) const = 0;
  // Returns the statistics of the lookups of a table; those of all processes, collectively.
  virtual LookupStatistics statistics(size_t table) const = 0;
  // Returns the lookup rules if the tables are variables; unset with an engine.
  virtual std::optional<LookupRules> host_rules() const { return {}; }
  // Counts ids of a feature that a serving plan has left out. Thread-safe.
  virtual void count_dropped(size_t, int64_t) {}

 protected:
  const TableSet& tables_;
};

// Holds each table in one trainable variable on the host.
class TPUEmbeddingLayer::VariableBackend : public TPUEmbeddingLayer::Backend {
 public:
  VariableBackend(const TableSet& tables, const Nest<FeatureConfig>& config, bool counts_lookups,
                  LookupRules rules = LookupRules::kHost);
  std::vector<Variable> build(const std::vector<Shape>& output_shapes) override;
  bool pools_dense() const override { return false; }
  void check_strategy() const override;
  Tensors lookup(const Tensors& features, const FeatureWeights& weights,
                 const Nest<FeatureConfig>& config) override;
  Tensor read(int table) const override;
  void write(int table, const Tensor& values) override;
  distribute::KeyedTable& keyed_table(int table, bool drain) const override;
  std::vector<StateEntry> state_entries() const override;
  IdCounts invalid_ids(size_t feature) const override { return invalid_ids_.counts(feature); }
  LookupStatistics statistics(size_t table) const override {
    return lookup_counter_.statistics(table);
  }
  std::optional<LookupRules> host_rules() const override { return rules_; }
  void count_dropped(size_t feature, int64_t count) override {
    invalid_ids_.add_dropped(feature, count);
  }

 private:
  const LookupRules rules_;
  const bool counts_lookups_;
  InvalidIdCounter invalid_ids_;
  LookupCounter lookup_counter_;
  const std::shared_ptr<HostTables> host_tables_;
};

// Holds each table in one trainable variable that all cores of a TPUStrategy read.
class TPUEmbeddingLayer::V0Backend final : public TPUEmbeddingLayer::VariableBackend {
 public:
  V0Backend(const TableSet& tables, const Nest<FeatureConfig>& config, bool counts_lookups)
      : VariableBackend(tables, config, counts_lookups, LookupRules::kV0) {}
  void check_strategy() const override;
};

// Holds the tables in the embedding engine of a TPUStrategy, behind one virtual variable.
class TPUEmbeddingLayer::EngineBackend final : public TPUEmbeddingLayer::Backend {
 public:
  // Throws ValueError if a table has no optimizer.
  EngineBackend(const TableSet& tables, const Nest<FeatureConfig>& config,
                EngineSessionOptions options);
  std::vector<Variable> build(const std::vector<Shape>& output_shapes) override;
  bool pools_dense() const override { return true; }
  void check_strategy() const override;
  bool supports_prefetch() const override;
  void prefetch(const Tensors& features, const FeatureWeights& weights) override;
  Tensors lookup(const Tensors& features, const FeatureWeights& weights,
                 const Nest<FeatureConfig>& config) override;
  Tensor read(int table) const override;
  void write(int table, const Tensor& values) override;
  distribute::KeyedTable& keyed_table(int table, bool drain) const override {
    return session_.keyed_table(table, drain);
  }
  std::vector<StateEntry> state_entries() const override;
  IdCounts invalid_ids(size_t feature) const override;
  LookupStatistics statistics(size_t table) const override { return session_.statistics(table); }

 private:
  EngineSession session_;
  Variable virtual_variable_;
};

}  // namespace keel
