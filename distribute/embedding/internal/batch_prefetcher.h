// BatchPrefetcher: prepares the lookups of the next batches of one replica of an EmbeddingEngine on
// a background thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <keel/distribute/embedding/internal/engine_tables.h>
#include <keel/distribute/embedding/internal/row_updater.h>
#include <keel/distribute/internal/background_worker.h>
#include <keel/distribute/internal/bloom_filter.h>

namespace keel::distribute {

// Groups the ids of prefetched batches and pools their rows. At most two batches are kept. Reads
// which rows the last update has changed from the replica's RowUpdater.
class BatchPrefetcher {
 public:
  // A prefetched batch.
  struct Batch {
    std::vector<FeatureBatch> features;
    std::vector<int> tables_to_group = {};        // the first pieces of the background job
    std::vector<size_t> features_to_pool = {};    // the remaining pieces
    std::vector<kernels::RowGroups> groups = {};  // by table
    std::vector<Tensor> values = {};              // by feature; empty if not pooled in advance
    std::vector<char> pooled = {};                // by feature: `values` is complete
    int64_t updates_seen = 0;                     // number of updates when pooling began
    bool begun = false;
  };

  BatchPrefetcher(const EngineTables& tables, const RowUpdater& updater, GroupBuffers& buffers);

  // Queues a batch. Drops the oldest one if two are queued.
  void add(std::vector<FeatureBatch> features);
  // Starts the background work on the first queued batch, unless it has been started.
  void start(Communicator& communicator);
  // Returns the batch with these features when its preparation is complete, or null if it was not
  // queued or not started. Batches queued before it are dropped, since lookups have the order of
  // the prefetches.
  std::shared_ptr<Batch> take(const std::vector<FeatureBatch>& features);
  // Returns the pooled rows of a batch by feature, after pooling again the samples that the update
  // since has changed. Features that the lookup must pool are empty.
  std::vector<Tensor> take_values(const Communicator& communicator, Batch& batch);
  // Called before rows are written. Features that are not pooled yet are skipped, because they
  // would have to be pooled again after the update.
  void stop_pooling();
  // Drops all batches, after stopping the background work on them.
  void drop_all();

 private:
  // Buffers for pooling again the samples of a table that an update has changed.
  struct Patch {
    BloomFilter changed;      // the rows that the update has changed
    std::vector<char> flags;  // by sample, over all features of the table
    std::vector<int64_t> samples, ids, splits;
    std::vector<float> weights, values;
  };

  void drop_first();
  void group_ids(Batch& batch, size_t table) const;
  void pool(Batch& batch, size_t feature) const;
  void patch_table(const Communicator& communicator, Batch& batch, size_t table, bool tries);
  std::optional<int64_t> flag_changed(const Communicator& communicator, const Batch& batch,
                                      size_t table, Patch& patch) const;
  void pool_flagged(Batch& batch, size_t feature, int64_t first_sample, Patch& patch) const;

  const EngineTables& tables_;
  const RowUpdater& updater_;
  GroupBuffers& buffers_;
  std::vector<std::shared_ptr<Batch>> queue_;  // the first one has begun
  std::vector<Patch> patches_;                 // by table
  std::vector<char> pools_ahead_;              // by table: pooling in advance pays off
  int64_t patched_ = 0;                        // number of batches patched
  BackgroundWorker worker_;                    // last: its thread uses the members above
};

}  // namespace keel::distribute
