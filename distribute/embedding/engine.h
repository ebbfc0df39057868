// EmbeddingEngine: embedding tables that are sharded over the replicas of a strategy.
//
// Hosts own rows (partition.h); load() and retrieve() transfer whole tables. A process holds the
// rows of its hosts in one memory block, in huge pages if the system has them, which all its
// replicas read. Within a process, lookups pool rows in place; only processes exchange ids and
// rows. In an update, each replica first sums its own gradients by row. Then the replicas of a
// process divide the rows among themselves, and each updates its share with the sums of all
// replicas, added in replica order. lookup(), apply() and drain() are collective: every replica
// calls them in the same order.
//
// 16-bit weights are rounded stochastically when a row is updated. The random bits depend only on
// the table's name, the update, the row and the element, not on threads or on the placement of
// replicas. An update is identified by its step's `iteration`; consecutive updates with the same
// iteration are numbered, starting over when weights are written. A run resumed from a checkpoint
// therefore draws the same bits if every update has its own iteration. It draws other bits if
// iterations repeat, as with embedding optimizers, whose iterations are all 0.
//
// A replica can announce its next batches with prefetch(). A thread of the replica then groups the
// ids and pools the rows while the replica does other work. If an update runs in between, the
// samples with a row that it has changed are pooled again, or all samples of a table if there are
// many. Lookups and updates give the same bits with and without prefetching. With several
// processes, only the ids are grouped ahead.
//
// With several processes, apply() sends the sums for rows of other processes and returns. The next
// lookup() or drain() updates the rows before it reads any.
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
#include <keel/framework/initializers.h>
#include <keel/framework/tensor.h>

namespace keel::distribute {

// One feature of one replica's batch. Sample s pools the rows of the ids at positions
// [row_splits[s], row_splits[s + 1]). Without row_splits there must be no weights, and sample s is
// the row of the id at position s.
struct FeatureBatch {
  Tensor ids;         // int64 [n]
  Tensor row_splits;  // int64 [samples + 1], or empty
  Tensor weights;     // float32 [n], or empty for ones
};

// The parameters of one table's update in a step.
struct TableStep {
  double learning_rate = 0;
  int64_t iteration = 0;
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
    std::shared_ptr<Ticket> ticket;  // drop it if no update follows
  };

  // The shards that this process holds.
  struct LocalShards {
    int first = 0;
    int count = -1;  // -1: all from `first`
  };

  // Creates one shard per tensor core. Weights are zero, slots have their initial values.
  explicit EmbeddingEngine(const EngineConfiguration& configuration)
      : EmbeddingEngine(configuration, LocalShards{}) {}
  // Creates the shards of one process.
  EmbeddingEngine(const EngineConfiguration& configuration, const LocalShards& local);
  ~EmbeddingEngine();

  // The configuration and parts of it.
  const EngineConfiguration& configuration() const;
  const std::vector<EngineTable>& tables() const { return configuration().tables; }
  int shards() const { return configuration().num_tensor_cores; }
  // Initializes the first `rows` rows of the weights (part 0) or of slot part - 1 of a table with
  // the values that `initializer` gives a tensor of that many rows.
  void initialize(int table, int part, int64_t rows, const InitializerFunction& initializer,
                  const RandomStream& stream);

  // Returns the rows that this process holds as [first, end). Throws NotImplementedError if they
  // are not contiguous, which is the case for mod sharding over several processes.
  std::pair<int64_t, int64_t> local_rows(int table) const;
  // Read or write rows [begin, end) of a part of a table as [end - begin, dim]. This process must
  // hold all of them (RuntimeError otherwise). Not collective; must not be called while replicas
  // run. 16-bit weights are converted to float32, and written values are rounded to the nearest.
  void read_rows(int table, int part, int64_t begin, int64_t end, float* out) const;
  void write_rows(int table, int part, int64_t begin, int64_t end, const float* values);
  // Read or write a whole table, so this process must hold all rows. load() throws ValueError
  // unless `values` is float32 of shape [rows, dim].
  Tensor retrieve(int table, int part = 0) const;
  void load(int table, int part, const Tensor& values);

  // Looks up this replica's batch: features[f] belongs to feature f of the configuration.
  // `training` tells that an update may follow. Throws ValueError for an id outside its table. A
  // prefetched batch is recognized by the identity of its tensors, not by their contents.
  // Collective.
  Activations lookup(Communicator& communicator, const std::vector<FeatureBatch>& features,
                     bool training = true);
  // Announces a batch that this replica will look up in training, after those announced before it.
  // Preparing it begins when the lookups of those are done, or immediately if there are none. With
  // one worker (num_workers()) it is prepared completely at that time. At most two prefetched
  // batches are kept. An invalid batch is ignored here; its lookup reports the error. Not
  // collective.
  void prefetch(Communicator& communicator, const std::vector<FeatureBatch>& features);
  // Sums the gradient of each row over samples, features and replicas, then updates every
  // looked-up row one time, by its table's rule with steps[t]; see RowUpdate. gradients[f] must be
  // float32 (TypeError) of shape [samples, dim] (ValueError), or empty for zeros. Throws
  // RuntimeError if the ticket was used before. Collective.
  void apply(Communicator& communicator, std::shared_ptr<Ticket> ticket,
             std::vector<Tensor> gradients, std::vector<TableStep> steps);
  // Applies pending updates. An update that fails stays pending if it has not written a row, and is
  // dropped otherwise. Collective.
  void drain(Communicator& communicator);
  bool has_pending() const;  // true if an update is pending
  // Called after a failed run: drops prefetched batches, and also the pending updates unless all
  // replicas have the same number of them.
  void forget_uneven_pending();

 private:
  struct State;
  void drop_prepared();
  const std::unique_ptr<State> state_;
};

}  // namespace keel::distribute
