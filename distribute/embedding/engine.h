// EmbeddingEngine: embedding tables that are sharded over the replicas of a strategy.
//
// Each row belongs to one host (partition.h). A process stores the rows of its hosts in one block
// of memory, in huge pages if the system has them, which all its replicas read. Within a process,
// lookups read and pool rows in place; only processes exchange ids and rows. load() and retrieve()
// transfer whole tables.
//
// In an update, each replica first sums its own gradients by row. Then the replicas of a process
// divide the rows among themselves, and each updates its share with the sums of all replicas, added
// in replica order.
//
// lookup(), apply() and drain() are collective: every replica must call them in the same order.
//
// 16-bit weights are rounded stochastically when a row is updated. The random bits depend only on
// the table's name, the update, the row and the element, not on threads or on the placement of
// replicas. An update is identified by TableStep::iteration. Consecutive updates with the same
// iteration are numbered, and the numbers start again when weights are written. A run resumed from
// a checkpoint therefore draws the same bits if every update has its own iteration, but not with
// embedding optimizers, for which all iterations are 0.
//
// A replica can pass its next batches to prefetch(). A background thread of the replica then
// groups the ids and pools the rows while the replica does other work. If an update runs in
// between, the samples that contain a changed row are pooled again, or all samples of the table if
// there are many. Prefetching does not change a bit of lookups and updates. With several processes,
// it only groups the ids.
//
// With several processes, apply() sends the sums for rows of other processes and returns. The next
// lookup() or drain() updates the rows before it reads any. An engine with tables for unbounded ids
// updates the rows in apply().
//
// With pipeline_execution_with_tensor_core, an update is applied after the rows of the next
// training lookup have been gathered: the lookup of step n sees exactly the updates of steps 0 ...
// n - 2. Inference lookups see all updates.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <keel/distribute/communicator.h>
#include <keel/distribute/embedding/configuration.h>
#include <keel/distribute/embedding/partition.h>
#include <keel/framework/initializers.h>
#include <keel/framework/tensor.h>

namespace keel::distribute {

class KeyedTable;

// One feature of one replica's batch. Sample s pools the rows of the ids at positions
// [row_splits[s], row_splits[s + 1]). If row_splits is empty, sample s is the row of ids[s], and
// weights must be empty.
struct FeatureBatch {
  Tensor ids;         // int64 [n], or string [n] for tables with string ids
  Tensor row_splits;  // int64 [samples + 1], or empty
  Tensor weights;     // float32 [n], or empty, which means 1 for every id
};

// The parameters of one table's update in a step.
struct TableStep {
  double learning_rate = 0;  // finite, >= 0
  int64_t iteration = 0;     // number of the step, for rules that use it and for rounding
  std::vector<double> hyperparameters = {};  // for custom rules
};

// The tables of a strategy and their updates.
class EmbeddingEngine {
 public:
  // A lookup whose gradients have not been applied. apply() consumes it.
  class Ticket;

  // The result of a lookup.
  struct Activations {
    std::vector<Tensor> values;      // per feature, float32 [samples, dim]
    std::shared_ptr<Ticket> ticket;  // pass it to apply(), or drop it if no update follows
  };

  // The shards that this process holds.
  struct LocalShards {
    int first = 0;
    int count = -1;  // -1: all from `first`
    // The processes that hold the other shards; required for tables with unbounded ids.
    ProcessGroup* group = nullptr;
  };

  // Creates one shard per tensor core. Weights are zero; slots have the initial values of the rule.
  explicit EmbeddingEngine(const EngineConfiguration& configuration)
      : EmbeddingEngine(configuration, LocalShards{}) {}
  // Creates only the shards of one process.
  EmbeddingEngine(const EngineConfiguration& configuration, const LocalShards& local);
  ~EmbeddingEngine();

  // The configuration and parts of it.
  const EngineConfiguration& configuration() const;
  const std::vector<EngineTable>& tables() const { return configuration().tables; }
  int shards() const { return configuration().num_tensor_cores; }
  // In the functions below, part 0 of a table is its weights, and part p > 0 is slot p - 1 of its
  // rule. A slot with Slot::per_row has one element per row in place of dim.

  // Returns the number of elements of a row of a part.
  int64_t width(int table, int part) const;

  // Initializes the first `rows` rows of a part of a table with the values that `initializer` gives
  // a tensor [rows, dim].
  void initialize(int table, int part, int64_t rows, const InitializerFunction& initializer,
                  const RandomStream& stream);

  // Returns the rows that this process holds. They are not contiguous for mod sharding over several
  // processes.
  const LocalRows& local_rows(int table) const;
  // Read or write rows [begin, end) of a part of a table as an array [end - begin, dim]. Throw
  // RuntimeError if this process does not hold all of these rows. Not collective. Must not be
  // called while replicas run. 16-bit weights are read as float32, and written values are rounded
  // to the nearest.
  void read_rows(int table, int part, int64_t begin, int64_t end, float* out) const;
  void write_rows(int table, int part, int64_t begin, int64_t end, const float* values);
  // Read or write a part of a whole table, of which this process must hold all rows. load() throws
  // ValueError unless `values` is float32 of shape [rows, dim].
  Tensor retrieve(int table, int part = 0) const;
  void load(int table, int part, const Tensor& values);

  // Looks up this replica's batch. features[f] belongs to feature f of the configuration.
  // `training` is true if an update may follow. A prefetched batch is recognized by the identity of
  // its tensors, not by their contents. Throws ValueError for a wrong number of features and for an
  // id outside its table, and RuntimeError if the engine was created for another number of
  // replicas. Collective.
  Activations lookup(Communicator& communicator, const std::vector<FeatureBatch>& features,
                     bool training = true);
  // Prefetches a batch that this replica will look up in training, after the batches prefetched
  // before it. Its preparation starts when those have been looked up, or immediately if there are
  // none. With one worker (num_workers()) it is prepared completely at that moment. At most two
  // prefetched batches are kept. An invalid batch is ignored; its lookup throws the error. Not
  // collective.
  void prefetch(Communicator& communicator, const std::vector<FeatureBatch>& features);
  // Updates the rows that a lookup has read, with the RowUpdate of their table t and steps[t]. By
  // default, the gradients of a row are summed over samples, features and replicas, and the row is
  // updated once. gradients[f] must be float32 (TypeError otherwise) of shape [samples, dim]
  // (ValueError otherwise), or empty for zeros. Throws ValueError for a wrong number of gradients
  // or steps and for an invalid learning rate, and RuntimeError if the ticket was used before.
  // Collective.
  void apply(Communicator& communicator, std::shared_ptr<Ticket> ticket,
             std::vector<Tensor> gradients, std::vector<TableStep> steps);
  // Applies the pending updates. An update that fails before it has written a row stays pending;
  // otherwise it is dropped. Collective.
  void drain(Communicator& communicator);
  bool has_pending() const;  // true if an update is pending
  // Returns a table for unbounded ids, whose type is private to the library; null for other tables.
  // Must not be used while replicas run.
  KeyedTable* keyed_table(int table) const;
  // Called after a failed run. Drops all prefetched batches. Also drops all pending updates, unless
  // every replica has the same number of them.
  void recover_from_failed_run();

 private:
  void check_static(int table) const;

  struct Replica;  // the lookups, updates and prefetched batches of one replica
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace keel::distribute
