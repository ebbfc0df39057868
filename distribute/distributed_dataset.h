// DistributedDataset produces batches for the replicas of a strategy.
// PerReplica holds one value for each replica of this process.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <keel/framework/data/dataset.h>

namespace keel::distribute {

// A vector of values by local replica. operator[] throws std::out_of_range for an invalid index.
template <class T>
class PerReplica {
  static_assert(!std::is_same_v<T, bool>,
                "replicas write their values concurrently, and elements of a vector of bool share "
                "memory");

 public:
  PerReplica() = default;
  explicit PerReplica(std::vector<T> values) : values_(std::move(values)) {}  // by local replica
  const std::vector<T>& values() const { return values_; }                    // by local replica
  const T& operator[](int replica) const { return values_.at(replica); }      // for a local replica
  int size() const { return static_cast<int>(values_.size()); }  // number of local replicas

 private:
  std::vector<T> values_;
};

// Selects whether Strategy::distribute_datasets_from_function() creates one input pipeline per host
// (kPerWorker) or one per replica.
enum class InputReplicationMode { kPerWorker, kPerReplica };

// Options of distributed datasets (tf.distribute.InputOptions). Distributing a dataset throws
// ValueError if experimental_fetch_to_device or experimental_place_dataset_on_device is true,
// because there is no device memory, or if the buffer size is negative.
struct InputOptions {
  bool experimental_fetch_to_device = false;  // must be false
  // Selects the input pipelines of distribute_datasets_from_function().
  InputReplicationMode experimental_replication_mode = InputReplicationMode::kPerWorker;
  bool experimental_place_dataset_on_device = false;  // must be false
  int64_t experimental_per_replica_buffer_size = 1;   // batches to prefetch; 0: no prefetching
};

// The argument of a function that creates the dataset of one input pipeline.
struct InputContext {
  int num_input_pipelines = 1;   // number of hosts, or of replicas in mode kPerReplica
  int input_pipeline_id = 0;     // index of this pipeline among all
  int num_replicas_in_sync = 1;  // number of replicas of all processes

  // Returns the batch size per replica. Throws ValueError if the number of replicas does not divide
  // `global_batch_size`.
  int64_t get_per_replica_batch_size(int64_t global_batch_size) const;
};

// A dataset. Each of its elements contains one batch for each replica of this process.
class DistributedDataset {
 public:
  // Returns the next element, or nullopt at the end.
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
    // Starts at the element that `next` returns.
    explicit RangeIterator(Next next) : next_(std::move(next)), element_(next_()) {}
    const PerReplica<Tensors>& operator*() const { return *element_; }  // The current element.
    // Moves to the next element.
    RangeIterator& operator++() {
      element_ = next_();
      return *this;
    }
    // Returns true until the end.
    bool operator!=(std::nullptr_t) const { return element_.has_value(); }

   private:
    Next next_;
    std::optional<PerReplica<Tensors>> element_;
  };
  // Start and end of a new iteration.
  RangeIterator begin() const { return RangeIterator(iterator()); }
  std::nullptr_t end() const { return nullptr; }  // See begin().

 private:
  std::function<Next()> make_;
  int64_t cardinality_;
};

}  // namespace keel::distribute
