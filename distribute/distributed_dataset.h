// DistributedDataset produces batches for the replicas of a strategy.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <keel/distribute/per_replica.h>
#include <keel/framework/data/dataset.h>

namespace keel::distribute {

// Selects whether Strategy::distribute_datasets_from_function() creates one input pipeline per host
// (kPerWorker) or one per replica.
enum class InputReplicationMode { kPerWorker, kPerReplica };

// Options of distributed datasets (tf.distribute.InputOptions). Distributing a dataset throws
// ValueError if experimental_fetch_to_device or experimental_place_dataset_on_device is true,
// because there is no device memory, or if the buffer size is negative.
struct InputOptions {
  bool experimental_fetch_to_device = false;
  InputReplicationMode experimental_replication_mode = InputReplicationMode::kPerWorker;
  bool experimental_place_dataset_on_device = false;
  int64_t experimental_per_replica_buffer_size = 1;  // batches to prefetch; 0: no prefetching
};

// The argument of a function that creates the dataset of one input pipeline.
struct InputContext {
  int num_input_pipelines = 1;  // number of hosts, or of replicas in mode kPerReplica
  int input_pipeline_id = 0;
  int num_replicas_in_sync = 1;

  // Returns the batch size per replica. Throws ValueError if the number of replicas does not divide
  // `global_batch_size`.
  int64_t get_per_replica_batch_size(int64_t global_batch_size) const;
};

// A dataset. Each of its elements contains one batch for each replica of this process.
class DistributedDataset {
 public:
  using Next = std::function<std::optional<PerReplica<Tensors>>()>;
  // Called by Strategy. `make` starts an iteration and returns its `Next` function.
  DistributedDataset(std::function<Next()> make, int64_t cardinality);

  // Starts an iteration. The returned function returns the next element, or nullopt at the end.
  Next iterator() const { return make_(); }
  // Returns the number of elements, that is, of steps, or data::kInfinite or
  // data::kUnknownCardinality.
  int64_t cardinality() const { return cardinality_; }

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
