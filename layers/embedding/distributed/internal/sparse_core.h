// SparseCore: the tables of a DistributedEmbedding that live in the embedding engine of a
// TPUStrategy, stacked. Private to that layer.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <keel/framework/random.h>
#include <keel/layers/embedding/distributed/distributed_config.h>
#include <keel/layers/embedding/distributed/id_limits.h>
#include <keel/layers/embedding/distributed/table_stacking.h>
#include <keel/layers/embedding/tpu_embedding.h>

namespace keel {

struct SparseCoreFeature {
  std::string path = {};
  int table = 0;        // position among the tables
  int64_t samples = 0;  // of a global batch; 0 if not known
};

struct SparseCoreOptions {
  std::string name = {};
  std::vector<std::shared_ptr<const keras_rs::TableConfig>> tables = {};
  std::vector<SparseCoreFeature> features = {};
  TableStacking table_stacking = "auto";
  IdLimitPolicy id_limit_policy = IdLimitPolicy::kUnlimited;
};

class SparseCore {
 public:
  // Under a TPUStrategy, which the tables belong to from then on. ValueError for a table without
  // optimizer, and as stack_tables and IdLimiter say.
  explicit SparseCore(SparseCoreOptions options);

  // Makes the tables, the values of each drawn from its stream. Returns the virtual variable that
  // stands for them all.
  Variable build(const std::vector<RandomStream>& streams);
  // One replica's rows of ids, by feature -> [rows, embedding_dim]. Collective. The gradient with
  // respect to the virtual variable updates the tables.
  std::vector<Tensor> look_up(std::vector<IdRows> features);

  // Weights, then slots, of one table: "<table>/embeddings", "<table>/embeddings/<slot>", without
  // padding. Empty until built.
  std::vector<StateEntry> state_entries(int table) const;
  const std::vector<TableStack>& stacks() const { return stacks_; }
  IdStatistics statistics(int table) const { return limiters_[table].statistics(); }

 private:
  class StackInitializer;
  struct Home {  // where a table is
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
  std::vector<std::shared_ptr<StackInitializer>> initializers_;  // by stack
  const layers::TPUEmbedding engine_;
};

}  // namespace keel
