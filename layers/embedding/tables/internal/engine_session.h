// EngineSession: the tables of one set of features in the embedding engine of a TPUStrategy. Shared
// by the Keras layer, the mid-level object and the V1 engine. It converts configs to the engine's
// record and features to ids, reads learning rates, runs or delays updates, and reads and writes
// state.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <keel/distribute/embedding/engine.h>
#include <keel/layers/embedding/tables/internal/invalid_id_counter.h>
#include <keel/layers/embedding/tables/internal/lookup_counter.h>
#include <keel/layers/embedding/tables/internal/position_pool.h>
#include <keel/layers/embedding/tables/table_config.h>
#include <keel/layers/layer.h>

namespace keel {

// Options of an EngineSession.
struct EngineSessionOptions {
  // Delays updates by one step; see distribute::EmbeddingEngine.
  bool pipeline_execution_with_tensor_core = false;
  distribute::ShardingStrategy sharding_strategy = distribute::ShardingStrategy::kDiv;
  std::string profile_data_directory = {};
  bool counts_lookups = false;  // collect the statistics()
};

// A handle. Copies share one state, which is destroyed with the last of them.
class EngineSession {
 public:
  // Identifies a lookup that apply() may update.
  struct Ticket {
    std::shared_ptr<distribute::EmbeddingEngine::Ticket> of_engine;
    std::vector<Shape> shapes;                       // of the activations
    std::vector<std::optional<PositionPool>> pools;  // by feature: of the combiner max
  };
  // One replica's features in the engine's form.
  struct Batch {
    std::vector<distribute::FeatureBatch> features;
    std::vector<Shape> shapes;          // of the activations
    std::vector<IdCounts> invalid_ids;  // by feature; added to invalid_ids() by the lookup
    // By feature: set for the combiner max, whose lookups pool rows that the engine looks up
    // position by position.
    std::vector<std::optional<PositionPool>> pools;
    // By feature: set for those of `by_position`, which the caller pools.
    std::vector<std::optional<PositionPool>> unpooled;
  };
  // The result of lookup().
  struct Lookup {
    std::vector<Tensor> activations;                    // by feature, with the batch's shapes
    std::vector<std::optional<PositionPool>> unpooled;  // see Batch
    std::shared_ptr<Ticket> ticket;
  };

  // Binds to the current strategy, which must be a TPUStrategy. Throws ValueError for a table
  // without an optimizer.
  EngineSession(const TableSet& tables, const Nest<FeatureConfig>& features,
                EngineSessionOptions options = {});
  ~EngineSession();

  // Creates the engine from a serialized record and initializes its tables. `output_shapes` are the
  // per-replica shapes of the activations without dim; an unknown dimension is recorded as -1.
  // `restored` holds whole tensors by name ("<table>", "<table>/<slot>"), which replace the
  // initializers' values.
  // Throws RuntimeError if the strategy has a active engine. Throws ValueError for a slot factory
  // that returns a tensor where shards need an initializer. After an error nothing has been
  // created.
  void build(const std::vector<Shape>& output_shapes,
             const std::map<std::string, Tensor>& restored = {});
  // Returns true once build() has succeeded. Replicas may call it concurrently with build().
  bool built() const;
  const std::string& record() const;  // the serialized TPUEmbeddingConfiguration, once built
  // Throws RuntimeError unless the current strategy is the one that the engine belongs to and still
  // holds the engine.
  void check_strategy() const;
  // Throws RuntimeError if the strategy has been destroyed or no longer holds the engine.
  void check_active() const;

  // Converts the features of one replica to the engine's form. Throws ValueError, naming the
  // feature, under the conditions of to_bags. Throws TypeError or ValueError for another structure.
  // Features f with by_position[f] are not pooled: their activations and gradients are
  // [positions, dim].
  Batch encode(const Tensors& features, const FeatureWeights& weights,
               const std::vector<bool>& by_position = {});

  // Converts features for activations of exactly these shapes without dim. Sparse and dense ids
  // must give that number of samples. The number of ragged rows must equal it, or divide it: then
  // the rows become sequence steps. Throws ValueError, naming the feature, otherwise.
  Batch encode(const Tensors& features, const FeatureWeights& weights,
               const std::vector<Shape>& output_shapes);

  // Starts the lookup of a batch that this replica will look up in training, with the same tensors;
  // see distribute::EmbeddingEngine. Errors in the batch are reported by that lookup. Does nothing
  // with one worker (num_workers), which cannot overlap the work with the step.
  void prefetch(const Tensors& features, const FeatureWeights& weights);
  // Looks up the batch that prefetch() has encoded from these tensors, or encodes them now.
  // Collective. If `training` is true, apply() may update the rows of the lookup once. See encode()
  // for `by_position`.
  Lookup lookup(const Tensors& features, const FeatureWeights& weights, bool training,
                const std::vector<bool>& by_position = {});
  // Looks up an encoded batch. Collective.
  Lookup lookup(const Batch& batch, bool training);
  // Updates the tables of a lookup. Collective. gradients[f] must have the shape (else ValueError)
  // and the dtype float32 (else TypeError) of activation f. An empty gradient counts as zeros, with
  // one warning per feature on stderr. Learning rates are read at this call. Throws RuntimeError if
  // the ticket was used before.
  void apply(const std::shared_ptr<Ticket>& ticket, std::vector<Tensor> gradients);

  // Read and write the values that training has reached, after pending updates. Call them outside
  // replicas. They access the strategy's active engine, even if another object built it, and throw
  // RuntimeError if that engine has no such table or slot. They work on whole tables even if a
  // process holds only some of the rows: they are collective over the processes, and every process
  // reads the whole table or writes the same values.
  Tensor read(int table, int part) const;
  // Returns a table with dynamic ids, after pending updates unless `drain` is false. Valid until
  // the engine is destroyed.
  distribute::KeyedTable& keyed_table(int table, bool drain = true) const;
  void write(int table, int part, const Tensor& values) const;
  std::vector<StateEntry> state_entries() const;

  // Accessors for the constructor's arguments.
  const TableSet& tables() const;
  const Nest<FeatureConfig>& features() const;
  const std::vector<std::string>& paths() const;    // by feature
  IdCounts invalid_ids(size_t feature) const;       // over all processes; collective over them
  LookupStatistics statistics(size_t table) const;  // likewise; of lookups that were counted
  // Changes EngineSessionOptions::counts_lookups for later lookups.
  void set_counts_lookups(bool counts);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace keel
