// The private parts of EmbeddingEngine. Lookups are in engine.cc, prefetching is in
// engine_prefetch.cc, updates are in engine_update.cc.
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

// Returns the batch in the form that kernels take.
kernels::Bags bags_of(const FeatureBatch& batch);

// The features of a lookup, with their groups if they were computed in advance.
class EmbeddingEngine::Ticket {
 public:
  std::vector<FeatureBatch> features;
  std::vector<kernels::RowGroups> groups;  // by table; empty if not computed yet
  bool used = false;
};

struct EmbeddingEngine::State {
  // An update whose rows are not written yet.
  struct Pending {
    bool has_begun = false;
    int64_t posted = 0;  // number of the post of its sums to other processes, if it has begun
    std::shared_ptr<Ticket> ticket;
    std::vector<Tensor> gradients;
    std::vector<TableStep> steps;
    bool writes = false;  // rows may have been written

    Step step(size_t table) const {
      return {.learning_rate = steps[table].learning_rate,
              .iteration = steps[table].iteration,
              .hyperparameters = steps[table].hyperparameters};
    }
  };

  // Numbers the updates of a table; equal in all replicas.
  struct UpdateCount {
    int64_t iteration = -1, since = 0;  // since: updates with this iteration before the last one
    void advance(int64_t to) {
      since = to == iteration ? since + 1 : 0;
      iteration = to;
    }
  };

  // A prefetched batch of one replica.
  struct Prepared {
    std::vector<FeatureBatch> features;
    std::vector<int> tables_to_group;             // the first pieces of the background job
    std::vector<size_t> features_to_pool;         // the remaining pieces
    std::vector<kernels::RowGroups> groups = {};  // by table
    std::vector<Tensor> values = {};              // by feature; empty if not pooled in advance
    std::vector<char> pooled = {};                // by feature: `values` is complete
    int64_t updates_seen = 0;                     // updates_done when pooling began
    bool begun = false;
  };

  // Buffers for pooling again the samples of a table that an update has changed.
  struct Patch {
    std::vector<char> flags;  // by sample, over all features of the table
    std::vector<int64_t> samples, ids, splits;
    std::vector<float> weights, values;
  };

  // Buffers of one replica, reused from step to step.
  struct Scratch {
    RemoteRows remote;
    std::vector<std::vector<int64_t>> elsewhere;  // by table: ids of rows that other processes hold
    std::vector<const float*> rows;               // by position of one feature
    std::vector<float> copies;                    // by position of one feature
    std::vector<RowGradients> gradients;          // by table
    std::vector<RowGradientList> outgoing;        // by process
    // Number of lookups since the last update. Within one process lookups do not synchronize, so
    // the label of the update checks that all replicas have made the same number.
    int64_t lookups = 0;
    std::string label;                 // of the update
    std::vector<UpdateCount> updates;  // by table
    int64_t updates_done = 0;          // equal in all replicas

    // Prefetched batches that have not been looked up, at most two. The first one has begun.
    std::vector<std::shared_ptr<Prepared>> ahead;
    std::vector<std::vector<kernels::RowGroups>> spare_groups;
    std::vector<Patch> patches;     // by table
    std::vector<char> pools_ahead;  // by table: pooling in advance pays off
    int64_t patched = 0;            // number of batches patched
    BackgroundWorker worker;        // last: its thread uses the members above

    // Keep the memory of unused groups, and return some of it for new groups.
    void keep_memory(std::vector<kernels::RowGroups>& groups);
    std::vector<kernels::RowGroups> memory_of_groups();
    // Drop prefetched batches, after stopping the background work on them.
    void drop_first();
    void drop_all();
    void stop_pooling_ahead();
  };

  EngineConfiguration configuration;
  std::string label;  // of the collectives of lookups
  int first_shard = 0;
  std::vector<int64_t> dims;                  // by table
  std::vector<uint64_t> table_keys;           // hashes of the table names
  std::vector<TableShard> held;               // by table
  std::vector<Scratch> scratch;               // by local replica
  std::vector<std::vector<Pending>> pending;  // by local replica, oldest first
  // By replica: the sums of its batch for rows that are held here. Each is written by one local
  // replica before a barrier and read by all after it. Updates alternate between two sets, because
  // other replicas may still read which rows the last update has changed.
  std::array<std::vector<RowGradientList>, 2> sums;

  const std::vector<EngineTable>& tables() const { return configuration.tables; }
  RowKeys keys_of(const Scratch& s, size_t table) const;
  std::vector<RowGradientList>& sums_of(int64_t update) { return sums[update % 2]; }
  const std::vector<RowGradientList>& sums_of(int64_t update) const { return sums[update % 2]; }
  int table_of(size_t feature) const { return configuration.features[feature].table_id; }
  // Returns the table; throws RuntimeError unless rows [first, end) are held here.
  TableShard& held_with(int table, int64_t first, int64_t end);
  void check(const std::vector<FeatureBatch>& features) const;
  // Checks the arguments of apply().
  void check(const std::vector<FeatureBatch>& features, const std::vector<Tensor>& gradients,
             const std::vector<TableStep>& steps) const;
  // Fetches the rows that other processes hold.
  void fetch(Communicator& communicator, const std::vector<FeatureBatch>& features,
             Scratch& scratch) const;
  // `prepared` holds the features that are pooled already; it may be null.
  std::vector<Tensor> pool(const std::vector<FeatureBatch>& features, Scratch& scratch,
                           Prepared* prepared) const;
  void pool_by_pointer(size_t feature, const FeatureBatch& batch, std::vector<int64_t>& next_remote,
                       Scratch& scratch, float* out) const;
  // Computes, for each table that is updated, which positions contribute to which rows.
  void group(const std::vector<FeatureBatch>& features,
             std::vector<kernels::RowGroups>& groups) const;
  void group(const std::vector<FeatureBatch>& features, size_t table,
             kernels::RowGroups& groups) const;
  // The steps of an update, see begin_update() and finish_update().
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
  // The two halves of an update. Between them other processes need not be waited for.
  void begin_update(Communicator& communicator, Pending& p);
  void finish_update(Communicator& communicator, Pending& p);
  void run_pending(Communicator& communicator);

  // Prefetching, see engine_prefetch.cc.
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
