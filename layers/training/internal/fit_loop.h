// FitLoop: the epochs of Model::fit.
#pragma once

#include <exception>
#include <optional>

#include <keel/layers/training/internal/loop.h>

namespace keel {

// The batches of a fit over arrays, and the options that are left when they are made.
struct FitData {
  data::Dataset batches;
  FitOptions options;
};

// Makes the batches of `arrays`, (x, y) or (x, y, sample_weight): shuffled, split for validation
// and batched as `options` says. Throws ValueError for invalid options.
FitData fit_data(const Tensors& arrays, const FitOptions& options);

// Trains a model on a dataset of batches; see Model::fit.
class FitLoop {
 public:
  // The arguments must outlive the loop. Throws ValueError for invalid options, RuntimeError if the
  // trainer has no optimizer or if the processes of a job train differently.
  FitLoop(Trainer& trainer, Model& model, const data::Dataset& batches, const FitOptions& options);

  // Runs the epochs. Returns the logs of each.
  History run();

 private:
  using Batch = Trainer::Batch;

  // The batch of the following step, read before the current step so that the model can prefetch
  // its rows. An error of reading it is rethrown when its own step is due.
  struct NextBatch {
    bool fetched = false;
    std::optional<Batch> batch = {};
    std::exception_ptr error = nullptr;
  };
  NextBatch prefetch();
  void skip_epochs(int64_t end);
  std::optional<Batch> first_batch();
  void restore(const ResumePoint& resume, const std::optional<Batch>& batch);
  void run_epoch(int64_t epoch, const std::optional<ResumePoint>& resume);
  void end_epoch(int64_t epoch);

  Trainer& trainer_;
  Model& model_;
  const FitOptions& options_;
  BatchSource source_;
  std::optional<BatchSource> validation_;
  std::optional<CallbackList> callbacks_;
  History history_;
};

}  // namespace keel
