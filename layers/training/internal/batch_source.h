// BatchSource: distributes the batches of a dataset to the replicas of a strategy, epoch after
// epoch. With more than one worker thread, the next batch is produced on a background thread while
// the current step runs. The order of batches and the step at which an error is thrown do not
// depend on this.
#pragma once

#include <optional>

#include <keel/distribute/strategy.h>

namespace keel {

// Iterates over the batches of each epoch.
class BatchSource {
 public:
  // Selects where an epoch of a fixed number of steps starts.
  enum class Epochs {
    kRunOn,      // where the previous epoch stopped; restarts the dataset at its end
    kFromStart,  // at the dataset's start; ends early, with one warning, if the dataset does
  };
  // An epoch has `steps` batches, or is one pass over the dataset if `steps` is unset. Throws
  // ValueError, prefixed with `caller`, if `steps` is not positive or if the dataset is infinite
  // and `steps` is unset.
  BatchSource(const char* caller, distribute::Strategy& strategy, const data::Dataset& dataset,
              std::optional<int64_t> steps, Epochs epochs);

  // Returns the number of batches per epoch if it is known. If the dataset does not report its
  // size, the number is known after the first epoch.
  std::optional<int64_t> steps() const;
  // Starts the next epoch.
  void start_epoch();
  // Returns the next batch of this epoch, or nothing at its end. Throws ValueError if the dataset
  // has no batches.
  std::optional<distribute::PerReplica<Tensors>> next();
  // Skips `epochs` epochs; afterwards the source is in the state that it would have if they had
  // run.
  void skip_epochs(int64_t epochs);

 private:
  void warn_of_end();

  const char* const caller_;
  const distribute::DistributedDataset batches_;
  const std::optional<int64_t> steps_;
  const bool runs_on_;
  bool warned_ = false;
  std::optional<int64_t> counted_;
  distribute::DistributedDataset::Next next_;
  int64_t given_ = 0;  // batches returned in this epoch
};

}  // namespace keel
