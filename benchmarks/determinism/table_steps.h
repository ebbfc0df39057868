// The part of a replicated training step that concerns embedding tables: lookups of a batch and the
// update with given gradients, with sums in a fixed or in a free order.
//
//   kFixed  the embedding engine: each replica sums its gradients by row, in the order of
//           positions; then each updates a share of the rows with the replicas' sums, added in
//           replica order
//   kFree   an equally correct update in arbitrary order and without the engine's checks: each
//           replica sends its ids to the owners of their rows, chosen by a hash, and each owner
//           processes them in the order of arrival. SGD updates are additive, so they are applied
//           at once; other rules collect sums in a hash table of the rows
#pragma once

#include <memory>
#include <vector>

#include <keel/distribute/embedding/engine.h>
#include <keel/distribute/embedding/internal/table_shard.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/kernels/update_rules/basic_update_rules.h>

#include "benchmarks/determinism/order.h"
#include "benchmarks/models/click_work.h"

namespace keel::bench {

class TableSteps {
 public:
  // Uses SGD or Adagrad, as `work` selects. `work` and `batches` must outlive this object.
  TableSteps(const ClickWork& work, const std::vector<ClickBatch>& batches, int replicas,
             Order order);

  void step(int batch);
  // Returns the rows of the first ids of the first batch, from all tables.
  std::vector<float> some_rows() const;

 private:
  // The ids of one replica for one owner, and the samples that contain them, table after table.
  struct RoutedIds {
    std::vector<int64_t> ids;
    std::vector<uint32_t> samples;
    std::vector<int64_t> ends;  // by table
    int64_t size = 0;

    int64_t begin(size_t table) const { return table == 0 ? 0 : ends[table - 1]; }
  };
  // Sums of rows by id, in the order in which the ids arrived.
  struct Sums {
    std::vector<int64_t> ids;
    std::vector<float> values;
    std::vector<int32_t> places;  // slots of a hash table; -1: free
  };
  struct Replica {
    // State of the engine.
    std::vector<std::vector<distribute::FeatureBatch>> features;  // by batch and table
    std::vector<Tensor> gradient_tensors;                         // by table
    // State of the free order.
    std::vector<std::vector<kernels::Bags>> bags;  // by batch and table
    std::vector<std::vector<float>> gradients;     // by table: [samples, dim]
    std::vector<std::vector<float>> found;         // likewise
    std::vector<RoutedIds> routed;                 // by owner
    Sums owned;
  };

  void make_tables();
  void make_engine();
  void make_replica(int replica);
  void fixed_step(int replica, int batch);
  void free_step(int replica, int batch);
  void route_rows(Replica& me, int batch);
  void collect(Replica& me, int owner, size_t table);

  const ClickWork& work_;
  const std::vector<ClickBatch>& batches_;
  const int replicas_count_;
  const Order order_;
  const Step step_;
  const distribute::RowUpdate update_;
  std::vector<int64_t> splits_;  // for the largest number of samples of any replica
  distribute::TPUStrategy strategy_;
  std::unique_ptr<distribute::EmbeddingEngine> engine_;  // fixed order only
  std::vector<distribute::TableShard> tables_;           // free order only
  std::vector<Replica> replicas_;
};

}  // namespace keel::bench
