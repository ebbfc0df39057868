// How a TPUEmbedding layer holds its tables. Private to the layer.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <keel/layers/embedding/tables/engine_session.h>
#include <keel/layers/embedding/tables/host_lookup.h>
#include <keel/layers/embedding/tables/host_tables.h>
#include <keel/layers/embedding/tpu_embedding.h>

namespace keel {

class TPUEmbeddingLayer::Backend {
 public:
  explicit Backend(const TableSet& tables) : tables_(tables) {}
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  // Makes the tables. Returns the variables that stand for them in the layer: the tables
  // themselves, or the virtual one. `output_shapes`: of the activations without dim, by feature.
  virtual std::vector<Variable> build(const std::vector<Shape>& output_shapes) = 0;
  // True if a dense input's last dimension of 1 goes away.
  virtual bool pools_dense() const = 0;
  // RuntimeError if the strategy of now is not of the kind this backend is for.
  virtual void check_strategy() const = 0;
  virtual Tensors look_up(const Tensors& features, const FeatureWeights& weights,
                          const Nest<FeatureConfig>& config) = 0;

  // Whether prefetch() does anything.
  virtual bool supports_prefetch() const { return false; }
  virtual void prefetch(const Tensors&, const FeatureWeights&) {}

  // The table as a tensor; differentiable where it is a variable.
  virtual Tensor read(int table) const = 0;
  virtual void write(int table, const Tensor& values) = 0;
  // What files and checkpoints keep that is not in a variable.
  virtual std::vector<StateEntry> state_entries() const { return {}; }
  virtual IdCounts invalid_ids(size_t feature) const = 0;
  // How the tables are looked up where they are variables; none with an engine.
  virtual std::optional<LookupRules> host_rules() const { return {}; }

 protected:
  const TableSet& tables_;
};

class TPUEmbeddingLayer::VariableBackend : public TPUEmbeddingLayer::Backend {
 public:
  VariableBackend(const TableSet& tables, const Nest<FeatureConfig>& config,
                  LookupRules rules = LookupRules::kHost);
  std::vector<Variable> build(const std::vector<Shape>& output_shapes) override;
  bool pools_dense() const override { return false; }
  void check_strategy() const override;
  Tensors look_up(const Tensors& features, const FeatureWeights& weights,
                  const Nest<FeatureConfig>& config) override;
  Tensor read(int table) const override;
  void write(int table, const Tensor& values) override;
  std::vector<StateEntry> state_entries() const override;
  IdCounts invalid_ids(size_t feature) const override { return tally_.counts(feature); }
  std::optional<LookupRules> host_rules() const override { return rules_; }

 private:
  const LookupRules rules_;
  InvalidIdCounter tally_;
  const std::shared_ptr<HostTables> held_;
};

class TPUEmbeddingLayer::V0Backend final : public TPUEmbeddingLayer::VariableBackend {
 public:
  V0Backend(const TableSet& tables, const Nest<FeatureConfig>& config)
      : VariableBackend(tables, config, LookupRules::kV0) {}
  void check_strategy() const override;
};

class TPUEmbeddingLayer::EngineBackend final : public TPUEmbeddingLayer::Backend {
 public:
  // ValueError if a table has no optimizer.
  EngineBackend(const TableSet& tables, const Nest<FeatureConfig>& config,
                EngineSessionOptions options);
  std::vector<Variable> build(const std::vector<Shape>& output_shapes) override;
  bool pools_dense() const override { return true; }
  void check_strategy() const override;
  bool supports_prefetch() const override;
  void prefetch(const Tensors& features, const FeatureWeights& weights) override;
  Tensors look_up(const Tensors& features, const FeatureWeights& weights,
                  const Nest<FeatureConfig>& config) override;
  Tensor read(int table) const override;
  void write(int table, const Tensor& values) override;
  std::vector<StateEntry> state_entries() const override;
  IdCounts invalid_ids(size_t feature) const override;

 private:
  EngineSession driver_;
  Variable virtual_variable_;
};

}  // namespace keel
