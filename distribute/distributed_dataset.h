// DistributedDataset: batches for the replicas of a strategy.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <keel/distribute/per_replica.h>
#include <keel/framework/data/dataset.h>

namespace keel::distribute {

enum class InputReplicationMode { kPerWorker, kPerReplica };

// tf.distribute.InputOptions. Embedding inputs are looked up by the host, so nothing is to be
// fetched to a device: experimental_fetch_to_device and experimental_place_dataset_on_device are
// taken for programs written for them; both may be set to false only (ValueError), since there is
// no device memory here.
struct InputOptions {
  bool experimental_fetch_to_device = false;
  InputReplicationMode experimental_replication_mode = InputReplicationMode::kPerWorker;
  bool experimental_place_dataset_on_device = false;
  int64_t experimental_per_replica_buffer_size = 1;  // batches made ahead; 0: none
};

// What a function that makes datasets is told.
struct InputContext {
  int num_input_pipelines = 1;  // hosts, or replicas in mode kPerReplica
  int input_pipeline_id = 0;
  int num_replicas_in_sync = 1;

  // ValueError unless the replicas divide it.
  int64_t get_per_replica_batch_size(int64_t global_batch_size) const;
};

class DistributedDataset {
 public:
  using Next = std::function<std::optional<PerReplica<Tensors>>()>;
  DistributedDataset(std::function<Next()> make, int64_t cardinality);

  // Runs the dataset once: returns batches, then nothing.
  Next iterator() const { return make_(); }
  int64_t cardinality() const { return cardinality_; }  // steps; see data::Dataset

  class RangeIterator {
   public:
    explicit RangeIterator(Next next) : next_(std::move(next)), element_(next_()) {}
    const PerReplica<Tensors>& operator*() const { return *element_; }
    RangeIterator& operator++() {
      element_ = next_();
      return *this;
    }
    bool operator!=(std::nullptr_t) const { return element_.has_value(); }

   private:
    Next next_;
    std::optional<PerReplica<Tensors>> element_;
  };
  RangeIterator begin() const { return RangeIterator(iterator()); }
  std::nullptr_t end() const { return nullptr; }

 private:
  std::function<Next()> make_;
  int64_t cardinality_;
};

}  // namespace keel::distribute
