// EmbeddingEngine: embedding tables split over the replicas of a strategy.
//
// Hosts own rows (partition.h); load and retrieve deal in rows of whole tables. A process holds the
// rows of its hosts in one piece of memory, on huge pages where the system has them, that all its
// replicas read: a lookup pools them where they stand, and asks other processes for the rows that
// they hold. In an update each replica first sums its own gradients by row; then the replicas of a
// process deal the rows out among them, and each steps its share, adding up the replicas' sums in
// their order. lookup, apply and drain are collective: every replica calls them, in the same order.
//
// Weights that a table keeps as 16-bit floats are rounded stochastically when a row is stepped, by
// bits that depend on the table's name, the update, the row and the element alone: never on threads
// or on where a replica lives. An update is known by its step's `iteration` and, among those that
// follow each other with one iteration, by its number since weights were last written. So a run
// that goes on from a checkpoint draws what the first one would have drawn if iterations tell the
// updates apart, and other bits where they do not, as those of embedding optimizers, all 0.
//
// A replica may announce what it will look up next, with prefetch: its ids are grouped and its rows
// pooled on a thread of the replica, beside what the replica does meanwhile. An update that comes
// in between is made good: the samples with a row that it has moved are pooled anew, and all
// of a table's where those are many. So a lookup gives the same bits, and updates do, whether or
// not it was announced. Where there are several processes, only ids are grouped.
//
// Where there are several processes, apply() sends the sums of rows that others hold and returns:
// the rows are updated by the next lookup or drain(), before either reads one.
//
// With pipeline_execution_with_tensor_core an update waits for the rows of the next training
// lookup to be gathered: the lookup of step n sees the updates of steps 0 ... n - 2, exactly.
// Inference lookups see all of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <keel/distribute/communicator.h>
#include <keel/distribute/embedding/configuration.h>
#include <keel/framework/initializers.h>
#include <keel/framework/tensor.h>

namespace keel::distribute {

// One feature of one replica's batch: sample s pools the rows of the ids at positions
// [row_splits[s], row_splits[s + 1]); without row_splits, and then without weights, it is the row
// of the id at position s.
struct FeatureBatch {
  Tensor ids;         // int64 [n]
  Tensor row_splits;  // int64 [samples + 1], or empty
  Tensor weights;     // float32 [n], or empty for ones
};

// What an update of one table needs to know of its step.
struct TableStep {
  double learning_rate = 0;
  int64_t iteration = 0;
  std::vector<double> hyperparameters = {};  // of custom rules
};

class EmbeddingEngine {
 public:
  // One lookup in flight: the route its gradients take back. Used up by apply().
  class Ticket;

  struct Activations {
    std::vector<Tensor> values;      // per feature, float32 [samples, dim]
    std::shared_ptr<Ticket> ticket;  // drop it if there will be no update
  };

  // Which shards live in this process.
  struct LocalShards {
    int first = 0;
    int count = -1;  // -1: all from `first`
  };

  // One shard for each tensor core. Weights are zero, slots at their initial values.
  explicit EmbeddingEngine(const EngineConfiguration& configuration)
      : EmbeddingEngine(configuration, LocalShards{}) {}
  EmbeddingEngine(const EngineConfiguration& configuration, const LocalShards& local);
  ~EmbeddingEngine();

  const EngineConfiguration& configuration() const;
  const std::vector<EngineTable>& tables() const { return configuration().tables; }
  int shards() const { return configuration().num_tensor_cores; }
  // The first `rows` rows of the weights (part 0) or of slot part - 1 of a table: what
  // `initializer` gives a tensor of so many rows.
  void initialize(int table, int part, int64_t rows, const InitializerFunction& initializer,
                  const RandomStream& stream);

  // The rows that this process holds: [first, end). NotImplementedError if they are not a run, for
  // rows dealt to hosts in turn over several processes.
  std::pair<int64_t, int64_t> local_rows(int table) const;
  // Rows [begin, end) of a part of a table, [end - begin, dim], all of them held here
  // (RuntimeError). Not collective, and not while replicas run. Weights that are kept as 16-bit
  // floats are read as they are, and written as the nearest ones.
  void read_rows(int table, int part, int64_t begin, int64_t end, float* out) const;
  void write_rows(int table, int part, int64_t begin, int64_t end, const float* values);
  // Both deal in whole tables, so every process must hold or be given all rows. ValueError unless
  // `values` is float32 [rows, dim].
  Tensor retrieve(int table, int part = 0) const;
  void load(int table, int part, const Tensor& values);

  // `features[f]` is this replica's batch. `training`: an update may follow. ValueError for an id
  // outside its table.
  // A batch that was announced is known by its tensors, not by their contents.
  Activations lookup(Communicator& communicator, const std::vector<FeatureBatch>& features,
                     bool training = true);
  // Says what this replica will look up, in training, after the lookups that it has said so of
  // before. Work begins when the last of those is done, or now if there are none; with one worker
  // (num_workers) it is done then. Of batches that are not looked up the last two are kept. What is
  // wrong with a batch is said by its lookup. Not collective.
  void prefetch(Communicator& communicator, const std::vector<FeatureBatch>& features);
  // gradients[f]: float32 (TypeError) [samples, dim] (ValueError), or empty for zeros. Sums the
  // gradient of each row over samples, features and replicas, then updates each row looked up once,
  // by its table's rule at steps[t]; see RowUpdate. RuntimeError if the ticket was used before.
  void apply(Communicator& communicator, std::shared_ptr<Ticket> ticket,
             std::vector<Tensor> gradients, std::vector<TableStep> steps);
  // Runs the updates that wait. One that fails waits on if no row has been written, else it is
  // dropped.
  void drain(Communicator& communicator);
  bool has_pending() const;  // an update waits
  // After a run that failed: forgets what waits unless it is the same in all replicas, and what is
  // prepared.
  void forget_uneven_pending();

 private:
  struct State;
  void drop_prepared();
  const std::unique_ptr<State> state_;
};

}  // namespace keel::distribute
