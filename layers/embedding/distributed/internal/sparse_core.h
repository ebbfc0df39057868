// SparseCore: the stacked tables of a DistributedEmbedding in the embedding engine of a
// TPUStrategy. Private to that layer.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <keel/framework/random.h>
#include <keel/layers/embedding/distributed/distributed_config.h>
#include <keel/layers/embedding/distributed/internal/id_limits.h>
#include <keel/layers/embedding/distributed/internal/table_stacking.h>
#include <keel/layers/embedding/tpu_embedding.h>

namespace keel {

// A feature of a table on sparse cores.
struct SparseCoreFeature {
  std::string path = {};
  int table = 0;        // position among the tables
  int64_t samples = 0;  // samples of a global batch; 0 if unknown
};

// Options of a SparseCore.
struct SparseCoreOptions {
  std::string name = {};
  std::vector<std::shared_ptr<const keras_rs::TableConfig>> tables = {};
  std::vector<SparseCoreFeature> features = {};
  TableStacking table_stacking = "auto";
  IdLimitPolicy id_limit_policy = IdLimitPolicy::kUnlimited;
  bool update_stats = false;  // limits grow to what the batches need
};

// Converts lookups in tables to lookups in stacks, and state of stacks to state of tables.
class SparseCore {
 public:
  // Binds the tables to the current strategy, which must be a TPUStrategy. Throws ValueError for a
  // table without an optimizer and under the conditions of stack_tables and IdLimiter.
  explicit SparseCore(SparseCoreOptions options);

  // Creates the tables and initializes each from its random stream. Returns the virtual variable
  // that represents all of them.
  Variable build(const std::vector<RandomStream>& streams);
  // Looks up one replica's rows of ids, by feature; each gives [rows, embedding_dim]. Collective.
  // Computing the gradient of the virtual variable updates the tables. Removes the ids beyond the
  // limits from `features` if they are dropped.
  std::vector<Tensor> look_up(std::vector<IdRows>& features);

  // Returns the weights and then the slots of one table, "<table>/embeddings" and
  // "<table>/embeddings/<slot>", without padding. Empty before build().
  std::vector<StateEntry> state_entries(int table) const;
  // Returns a table with dynamic ids.
  DynamicTable dynamic_table(int table) const;
  // Returns the stacks.
  const std::vector<TableStack>& stacks() const { return stacks_; }
  // Returns the id statistics of one table.
  IdStatistics statistics(int table) const { return limiters_[table].statistics(); }
  // Return the limits of one table, and replace them.
  IdLimits limits(int table) const { return limiters_[table].limits(); }
  void set_limits(int table, const IdLimits& limits) { limiters_[table].set_limits(limits); }

 private:
  class StackInitializer;
  struct Home {  // position of a table
    int stack = 0;
    int member = 0;
  };
  const TableStack& stack_of(int table) const { return stacks_[homes_[table].stack]; }
  const StackMember& member_of(int table) const {
    return stack_of(table).members[homes_[table].member];
  }
  void apply_limits(std::vector<IdRows>& features);
  layers::TPUEmbedding make_engine_layer();

  const SparseCoreOptions options_;
  const std::vector<TableStack> stacks_;
  std::vector<Home> homes_;                                      // by table
  std::deque<IdLimiter> limiters_;                               // by table
  std::vector<Table> engine_tables_;                             // by stack
  std::vector<std::shared_ptr<StackInitializer>> initializers_;  // by stack
  const layers::TPUEmbedding engine_;
};

}  // namespace keel
