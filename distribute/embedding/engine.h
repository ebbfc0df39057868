// EmbeddingEngine: embedding tables split over the replicas of a strategy.
//
// Which shard owns a row is decided in one place (partition.h) and seen nowhere else: load and
// retrieve deal in rows of whole tables. A lookup is three steps: ids go to the shards that own
// them, shards gather rows, rows come back and are pooled. An update is the same route
// backwards. lookup and apply are collective: every replica calls them, in the same order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "distribute/communicator.h"
#include "distribute/embedding/row_update.h"
#include "framework/initializers.h"
#include "framework/kernels/gather.h"
#include "framework/tensor.h"

namespace keel::distribute {

using kernels::Combiner;

struct EngineTable {
  std::string name;
  int64_t rows = 0, dim = 0;
  Combiner combiner = Combiner::kMean;
  RowUpdate update = {};  // no rule: no slots, no updates
};

// One feature of one replica's batch: sample s pools the rows of the ids at positions
// [row_splits[s], row_splits[s + 1]).
struct FeatureBatch {
  Tensor ids;         // int64 [n]
  Tensor row_splits;  // int64 [samples + 1]
  Tensor weights;     // float32 [n], or empty for ones
};

class EmbeddingEngine {
 public:
  // One lookup in flight: the route its gradients take back. Used up by apply().
  class Ticket;

  struct Activations {
    std::vector<Tensor> values;      // per feature, float32 [samples, dim]
    std::shared_ptr<Ticket> ticket;  // drop it if there will be no update
  };

  // feature_tables[f] is the index in `tables` of feature f's table; `shards` is the number of
  // replicas. Weights are zero, slots at their initial values.
  EmbeddingEngine(std::vector<EngineTable> tables, std::vector<int> feature_tables, int shards);
  ~EmbeddingEngine();

  const std::vector<EngineTable>& tables() const;
  int shards() const;
  void initialize(int table, const InitializerFunction& initializer, const RandomStream& stream);

  // Rows [begin, end) of the weights (part 0) or of slot part - 1 of a table, [end - begin, dim].
  // Not collective, and not while replicas run.
  void read_rows(int table, int part, int64_t begin, int64_t end, float* out) const;
  void write_rows(int table, int part, int64_t begin, int64_t end, const float* values);
  Tensor retrieve(int table, int part = 0) const;
  // ValueError unless `values` is float32 [rows, dim].
  void load(int table, int part, const Tensor& values);

  // `features[f]` is this replica's batch. ValueError for an id outside its table.
  Activations lookup(Communicator& communicator, const std::vector<FeatureBatch>& features);
  // gradients[f]: float32 [samples, dim], or empty for zeros. Sums the gradient of each row over
  // samples, features and replicas, then updates each row looked up once, by its table's rule at
  // steps[t]; see RowUpdate. RuntimeError if the ticket was used before.
  void apply(Communicator& communicator, Ticket& ticket, const std::vector<Tensor>& gradients,
             const std::vector<Step>& steps);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace keel::distribute
