// What EmbeddingEngine is made of, for its sources: lookups are in engine.cc, what is prepared of
// them in engine_prefetch.cc, updates in engine_update.cc.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <keel/distribute/embedding/engine.h>
#include <keel/distribute/embedding/internal/background_worker.h>
#include <keel/distribute/embedding/internal/remote_rows.h>
#include <keel/distribute/embedding/internal/row_gradient_list.h>
#include <keel/distribute/embedding/internal/row_gradients.h>
#include <keel/distribute/embedding/internal/table_shard.h>

namespace keel::distribute {

// As the kernels take it.
kernels::Bags bags_of(const FeatureBatch& batch);

class EmbeddingEngine::Ticket {
 public:
  std::vector<FeatureBatch> features;
  std::vector<kernels::RowGroups> groups;  // by table, if they are known
  bool used = false;
};

struct EmbeddingEngine::State {
  // An update that waits for the next lookup.
  struct Pending {
    bool has_begun = false;
    int64_t posted = 0;  // once it has begun: its sums, on their way to other processes
    std::shared_ptr<Ticket> ticket;
    std::vector<Tensor> gradients;
    std::vector<TableStep> steps;
    bool writes = false;  // rows may have been stepped

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

  // A batch that one replica has announced.
  struct Prepared {
    std::vector<FeatureBatch> features;
    std::vector<int> tables_to_group;             // the first pieces of the work
    std::vector<size_t> features_to_pool;         // the others
    std::vector<kernels::RowGroups> groups = {};  // by table
    std::vector<Tensor> values = {};              // by feature; empty unless it is to be pooled
    std::vector<char> pooled = {};                // by feature
    int64_t updates_seen = 0;                     // by the values
    bool begun = false;
  };

  // What it takes to bring pooled features of a table up to date.
  struct Patch {
    std::vector<char> flags;  // by sample, over all features of the table
    std::vector<int64_t> samples, ids, splits;
    std::vector<float> weights, values;
  };

  // Buffers of one replica, kept from step to step.
  struct Scratch {
    RemoteRows remote;
    std::vector<std::vector<int64_t>> elsewhere;  // by table: ids of rows that others hold
    std::vector<const float*> rows;               // by position of one feature
    std::vector<float> copies;                    // likewise
    std::vector<RowGradients> gradients;          // by table
    std::vector<RowGradientList> outgoing;        // by process
    // Since the last update: in one process lookups meet no other replica, so the update tells
    // whether all have made the same ones.
    int64_t lookups = 0;
    std::string label;                 // of the update
    std::vector<UpdateCount> updates;  // by table
    int64_t updates_done = 0;          // equal in all replicas

    // Those that are not looked up yet, at most two: the first has been begun.
    std::vector<std::shared_ptr<Prepared>> ahead;
    std::vector<std::vector<kernels::RowGroups>> spare_groups;
    std::vector<Patch> patches;     // by table
    std::vector<char> pools_ahead;  // by table: there was not much to patch
    int64_t patched = 0;            // batches
    BackgroundWorker worker;        // last: its thread uses what stands above

    void keep_memory(std::vector<kernels::RowGroups>& groups);
    std::vector<kernels::RowGroups> memory_of_groups();
    void drop_first();
    void drop_all();
    void stop_pooling_ahead();
  };

  EngineConfiguration configuration;
  std::string label;  // of lookups
  int first_shard = 0;
  std::vector<int64_t> dims;                  // by table
  std::vector<uint64_t> table_keys;           // of their names
  std::vector<TableShard> held;               // by table
  std::vector<Scratch> scratch;               // by local replica
  std::vector<std::vector<Pending>> pending;  // by local replica, oldest first
  // By replica: what its batch adds to rows that are held here. Each is written by one local
  // replica before a meeting and read by all after it. Updates take turns with two of them: some
  // replica may still read which rows the last one has moved.
  std::array<std::vector<RowGradientList>, 2> sums;

  const std::vector<EngineTable>& tables() const { return configuration.tables; }
  RowKeys keys_of(const Scratch& s, size_t table) const;
  std::vector<RowGradientList>& sums_of(int64_t update) { return sums[update % 2]; }
  const std::vector<RowGradientList>& sums_of(int64_t update) const { return sums[update % 2]; }
  int table_of(size_t feature) const { return configuration.features[feature].table_id; }
  TableShard& held_with(int table, int64_t first, int64_t end);
  void check(const std::vector<FeatureBatch>& features) const;
  // Of what apply() is given.
  void check(const std::vector<FeatureBatch>& features, const std::vector<Tensor>& gradients,
             const std::vector<TableStep>& steps) const;
  void fetch(Communicator& communicator, const std::vector<FeatureBatch>& features,
             Scratch& scratch) const;
  // `prepared`, which may be null, has what is pooled already.
  std::vector<Tensor> pool(const std::vector<FeatureBatch>& features, Scratch& scratch,
                           Prepared* prepared) const;
  void pool_by_pointer(size_t feature, const FeatureBatch& batch, std::vector<int64_t>& next_remote,
                       Scratch& scratch, float* out) const;
  // Of each table that is updated: which positions add to which rows.
  void group(const std::vector<FeatureBatch>& features,
             std::vector<kernels::RowGroups>& groups) const;
  void group(const std::vector<FeatureBatch>& features, size_t table,
             kernels::RowGroups& groups) const;
  void fill_gradients(const Pending& p, Scratch& scratch) const;
  bool steps_as_it_sums(size_t table, const Communicator& communicator) const;
  void step_own_sums(const Pending& p, const Scratch& scratch, const Communicator& communicator);
  void list_sums(Communicator& communicator, Scratch& scratch);
  int64_t post_sums(Communicator& communicator, Scratch& scratch) const;
  void collect_sums(Communicator& communicator, int64_t posted, std::vector<RowGradientList>& lists,
                    const std::string& call) const;
  void step_listed(Communicator& communicator, const Pending& p, const Scratch& s);
  void step_all(size_t table, KWayMerge& merge, std::pair<int64_t, int64_t> positions,
                const Step& step, RowKeys& keys);
  // The halves of an update: other processes need not be waited for between them.
  void begin_update(Communicator& communicator, Pending& p);
  void finish_update(Communicator& communicator, Pending& p);
  void run_pending(Communicator& communicator);

  std::vector<int> features_of(size_t table) const;
  void begin_first(Communicator& communicator, Scratch& scratch) const;
  void group_ahead(Prepared& prepared, size_t table) const;
  void pool_ahead(Prepared& prepared, size_t feature) const;
  std::shared_ptr<Prepared> take_prepared(const std::vector<FeatureBatch>& features,
                                          Scratch& scratch) const;
  void refresh(const Communicator& communicator, Prepared& prepared, Scratch& scratch) const;
  std::optional<int64_t> flag_moved(const Communicator& communicator, const Prepared& prepared,
                                    const Scratch& scratch, size_t table, Patch& patch) const;
  void pool_flagged(Prepared& prepared, size_t feature, int64_t first_sample, Patch& patch) const;
};

}  // namespace keel::distribute
