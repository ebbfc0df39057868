// EngineSession: the tables of one set of features in the embedding engine of a TPUStrategy. What
// the Keras layer, the mid-level object and the estimator's engine have in common: settled configs
// become the engine's record, features become ids, rates are read, updates wait or run, and state
// is read and written.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <keel/distribute/embedding/engine.h>
#include <keel/layers/embedding/tables/invalid_id_counter.h>
#include <keel/layers/embedding/tables/table_config.h>
#include <keel/layers/layer.h>

namespace keel {

struct EngineSessionOptions {
  // Updates run one step late; see distribute::EmbeddingEngine.
  bool pipeline_execution_with_tensor_core = false;
  distribute::ShardingStrategy sharding_strategy = distribute::ShardingStrategy::kDiv;
  std::string profile_data_directory = {};
};

// A handle: copies share one driver, which lives as long as any of them.
class EngineSession {
 public:
  // A lookup that may be updated.
  struct Ticket {
    std::shared_ptr<distribute::EmbeddingEngine::Ticket> of_engine;
    std::vector<Shape> shapes;  // of the activations
  };
  struct Batch {
    std::vector<distribute::FeatureBatch> features;
    std::vector<Shape> shapes;          // of the activations
    std::vector<IdCounts> invalid_ids;  // by feature; counted once they are looked up
  };
  struct Lookup {
    std::vector<Tensor> activations;  // per feature, of the batch's shapes
    std::shared_ptr<Ticket> ticket;
  };

  // Takes the strategy of now, which must be a TPUStrategy. ValueError for a table without
  // optimizer.
  EngineSession(const TableSet& tables, const Nest<FeatureConfig>& features,
                EngineSessionOptions options = {});
  ~EngineSession();

  // Makes the engine, from a serialized record, and the first values of its tables.
  // `output_shapes` are the activations' without dim, per replica; an unknown dimension is written
  // as -1. `restored` has whole values by name ("<table>", "<table>/<slot>"), which tables start
  // from instead of what their initializers give.
  // RuntimeError if the strategy has a live engine; ValueError for a slot factory that gives values
  // where shards need an initializer. Nothing has been made then.
  void build(const std::vector<Shape>& output_shapes,
             const std::map<std::string, Tensor>& restored = {});
  bool built() const;
  const std::string& record() const;  // the serialized TPUEmbeddingConfiguration, once built
  // RuntimeError unless the strategy of now is the one the engine belongs to, and still holds it.
  void check_strategy() const;
  // RuntimeError if the strategy has gone or no longer holds the engine.
  void check_live() const;

  // Features of one replica as the engine takes them. ValueError, with the feature's path, as
  // to_bags says; TypeError and ValueError for other structures.
  Batch encode(const Tensors& features, const FeatureWeights& weights);

  // The same for activations of exactly these shapes without dim: sparse ids and dense ones must be
  // as many samples as that, ragged rows as many or a divisor of it: then they become steps of
  // sequences. ValueError, with the feature's path, where they are not.
  Batch encode(const Tensors& features, const FeatureWeights& weights,
               const std::vector<Shape>& output_shapes);

  // Says what this replica will look up in training, by look_up of a batch from `encode_or_take` of
  // the same tensors: see distribute::EmbeddingEngine. What is wrong with it is said then. With one
  // worker (num_workers), which has no time to spare, nothing happens.
  void prefetch(const Tensors& features, const FeatureWeights& weights);
  // What prefetch has encoded, or encode() now.
  Batch encode_or_take(const Tensors& features, const FeatureWeights& weights, bool training);

  // Both are collective. A lookup that is for training may be updated, once.
  Lookup look_up(const Batch& batch, bool training);
  // gradients[f] has the shape (ValueError) and the dtype float32 (TypeError) of activation f, or
  // is empty: zeros, which is said once on stderr. Rates are read now. RuntimeError if the ticket
  // was used before.
  void apply(const std::shared_ptr<Ticket>& ticket, std::vector<Tensor> gradients);

  // Outside replicas: the values that training has reached, with no update waiting. They are those
  // of the strategy's live engine, whoever built it. RuntimeError if that has no such table or
  // slot. Whole tables, also where a process holds a part of their rows: collective over the
  // processes, all of which read the whole table or write the same values.
  Tensor read(int table, int part) const;
  void write(int table, int part, const Tensor& values) const;
  std::vector<StateEntry> state_entries() const;

  const TableSet& tables() const;
  const Nest<FeatureConfig>& features() const;
  const std::vector<std::string>& paths() const;  // by feature
  IdCounts invalid_ids(size_t feature) const;     // over all processes; collective over them

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace keel
