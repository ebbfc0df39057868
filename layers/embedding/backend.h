// How a TPUEmbedding layer holds its tables. Private to the layer.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "layers/embedding/tpu_embedding.h"

namespace keel {

using FeatureWeights = std::optional<Nest<std::optional<TensorLike>>>;

class TPUEmbeddingLayer::Backend {
 public:
  explicit Backend(const TableSet& tables) : tables_(tables) {}
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  // Makes the tables. Returns the variables that stand for them in the layer: the tables
  // themselves, or the virtual one.
  virtual std::vector<Variable> build() = 0;
  // RuntimeError if the strategy of now is not of the kind this backend is for.
  virtual void check_strategy() const = 0;
  virtual Tensors look_up(const Tensors& features, const FeatureWeights& weights,
                          const Nest<FeatureConfig>& config) = 0;

  // The table as a tensor; differentiable where it is a variable.
  virtual Tensor read(int table) const = 0;
  virtual void write(int table, const Tensor& values) = 0;
  // What files and checkpoints keep that is not in a variable.
  virtual std::vector<StateEntry> state_entries() const { return {}; }

 protected:
  const TableSet& tables_;
};

class TPUEmbeddingLayer::VariableBackend final : public TPUEmbeddingLayer::Backend {
 public:
  using Backend::Backend;
  std::vector<Variable> build() override;
  void check_strategy() const override;
  Tensors look_up(const Tensors& features, const FeatureWeights& weights,
                  const Nest<FeatureConfig>& config) override;
  Tensor read(int table) const override;
  void write(int table, const Tensor& values) override;

 private:
  std::vector<Variable> variables_;  // by table
};

class TPUEmbeddingLayer::EngineBackend final : public TPUEmbeddingLayer::Backend {
 public:
  // ValueError if a table has no optimizer.
  EngineBackend(const TableSet& tables, const Nest<FeatureConfig>& config, int replicas);
  ~EngineBackend() override;
  std::vector<Variable> build() override;
  void check_strategy() const override;
  Tensors look_up(const Tensors& features, const FeatureWeights& weights,
                  const Nest<FeatureConfig>& config) override;
  Tensor read(int table) const override;
  void write(int table, const Tensor& values) override;
  std::vector<StateEntry> state_entries() const override;

 private:
  // What a gradient closure may still need when the layer is gone.
  struct Shared;
  const std::shared_ptr<Shared> shared_;
  Variable virtual_variable_;
};

}  // namespace keel
