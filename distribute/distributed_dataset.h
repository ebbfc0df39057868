// DistributedDataset produces batches for the replicas of a strategy.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <keel/distribute/per_replica.h>
#include <keel/framework/data/dataset.h>

namespace keel::distribute {

// Whether distribute_datasets_from_function() makes one input pipeline per host or per replica.
enum class InputReplicationMode { kPerWorker, kPerReplica };

// Options of distributed datasets (tf.distribute.InputOptions). There is no device memory, so
// experimental_fetch_to_device and experimental_place_dataset_on_device exist only for
// compatibility and must be false (ValueError otherwise).
struct InputOptions {
  bool experimental_fetch_to_device = false;
  InputReplicationMode experimental_replication_mode = InputReplicationMode::kPerWorker;
  bool experimental_place_dataset_on_device = false;
  int64_t experimental_per_replica_buffer_size = 1;  // prefetched batches; 0: no prefetching
};

// The arguments of a function that creates the dataset of one input pipeline.
struct InputContext {
  int num_input_pipelines = 1;  // number of hosts, or of replicas in mode kPerReplica
  int input_pipeline_id = 0;
  int num_replicas_in_sync = 1;

  // Returns the batch size per replica. Throws ValueError if the number of replicas does not divide
  // `global_batch_size`.
  int64_t get_per_replica_batch_size(int64_t global_batch_size) const;
};

// A dataset whose elements are one batch per replica of this process.
class DistributedDataset {
 public:
  using Next = std::function<std::optional<PerReplica<Tensors>>()>;
  // Called by Strategy. `make` begins a pass over the dataset.
  DistributedDataset(std::function<Next()> make, int64_t cardinality);

  // Returns a function that returns the batches of one pass over the dataset, then nullopt.
  Next iterator() const { return make_(); }
  int64_t cardinality() const { return cardinality_; }  // number of steps; see data::Dataset

  // Iterator for range-based for loops.
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
