// BatchSource: the batches of a dataset, dealt to the replicas of a strategy, epoch after epoch.
// With more than one worker the next batch is made on a thread beside the step that runs; order
// and errors are as without.
#pragma once

#include <optional>

#include <keel/distribute/strategy.h>

namespace keel {

class BatchSource {
 public:
  // What epochs of a number of steps are.
  enum class Epochs {
    kRunOn,      // each goes on in the dataset where the last one stopped, around its end
    kFromStart,  // each begins at the dataset's start and ends with it, which is warned of once
  };
  // Epochs of `steps` batches, or of one pass each, if unset. ValueError, naming `caller`, unless
  // steps is positive, and for an endless dataset without steps.
  BatchSource(const char* caller, distribute::Strategy& strategy, const data::Dataset& dataset,
              std::optional<int64_t> steps, Epochs epochs);

  // Of an epoch, if known: in time for the first one, or after it.
  std::optional<int64_t> steps() const;
  void start_epoch();
  // The next batch of this epoch, or nothing at its end. ValueError if the dataset has no batch.
  std::optional<distribute::PerReplica<Tensors>> next();
  // Passes over the next epochs, as if they had run.
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
  int64_t given_ = 0;  // in this epoch
};

}  // namespace keel
