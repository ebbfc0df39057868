// What EmbeddingEngine is made of, for its sources: lookups are in engine.cc, updates in
// engine_update.cc.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "distribute/embedding/engine.h"
#include "distribute/embedding/held_table.h"
#include "distribute/embedding/remote_rows.h"
#include "distribute/embedding/row_gradients.h"
#include "distribute/embedding/row_list.h"

namespace keel::distribute {

// As the kernels take it.
kernels::Bags bags_of(const FeatureBatch& batch);

class EmbeddingEngine::Ticket {
 public:
  std::vector<FeatureBatch> features;
  bool used = false;
};

struct EmbeddingEngine::State {
  // An update that waits for the next lookup.
  struct Pending {
    std::shared_ptr<Ticket> ticket;
    std::vector<Tensor> gradients;
    std::vector<TableStep> steps;

    Step step(size_t table) const {
      return {.learning_rate = steps[table].learning_rate,
              .iteration = steps[table].iteration,
              .hyperparameters = steps[table].hyperparameters};
    }
  };

  // Tells the updates of a table apart; equal in all replicas.
  struct UpdateCount {
    int64_t iteration = -1, since = 0;  // of the last update
    void advance(int64_t to) {
      since = to == iteration ? since + 1 : 0;
      iteration = to;
    }
  };

  // Buffers of one replica, kept from step to step.
  struct Scratch {
    RemoteRows remote;
    std::vector<std::vector<int64_t>> elsewhere;  // by table: ids of rows that others hold
    std::vector<const float*> rows;               // by position of one feature
    std::vector<float> copies;                    // likewise
    std::vector<RowGradients> gradients;          // by table
    std::vector<RowList> outgoing;                // by process
    // Since the last update: in one process lookups meet no other replica, so the update tells
    // whether all have made the same ones.
    int64_t lookups = 0;
    std::string label;                 // of the update
    std::vector<UpdateCount> updates;  // by table
  };

  EngineConfiguration configuration;
  std::string label;  // of lookups
  int first_shard = 0;
  std::vector<int64_t> dims;                  // by table
  std::vector<uint64_t> table_keys;           // of their names
  std::vector<HeldTable> held;                // by table
  std::vector<Scratch> scratch;               // by local replica
  std::vector<std::vector<Pending>> pending;  // by local replica, oldest first
  // By replica: what its batch adds to rows that are held here. Each is written by one local
  // replica before a meeting and read by all after it.
  std::vector<RowList> sums;

  const std::vector<EngineTable>& tables() const { return configuration.tables; }
  RowKeys keys_of(const Scratch& s, size_t table) const;
  int table_of(size_t feature) const { return configuration.features[feature].table_id; }
  HeldTable& held_with(int table, int64_t first, int64_t end);
  void check(const std::vector<FeatureBatch>& features) const;
  void fetch(Communicator& communicator, const std::vector<FeatureBatch>& features,
             Scratch& scratch) const;
  std::vector<Tensor> pool(const std::vector<FeatureBatch>& features, Scratch& scratch) const;
  void pool_by_pointer(size_t feature, const FeatureBatch& batch, std::vector<int64_t>& next_remote,
                       Scratch& scratch, float* out) const;
  void group(const Pending& p, Scratch& scratch) const;
  bool steps_as_it_sums(size_t table, const Communicator& communicator) const;
  void step_own_sums(const Pending& p, const Scratch& scratch, const Communicator& communicator);
  void list_sums(Communicator& communicator, Scratch& scratch);
  void receive_sums(Communicator& communicator, std::vector<RowList>& outgoing);
  void step_listed(Communicator& communicator, const Pending& p, const Scratch& s);
  void step_all(size_t table, RowMerge& merge, std::pair<int64_t, int64_t> positions,
                const Step& step, RowKeys& keys);
  void update(Communicator& communicator, const Pending& p);
  void run_pending(Communicator& communicator);
};

}  // namespace keel::distribute
