// Callbacks that end training: EarlyStopping, TerminateOnNaN and TerminateOnSignal.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/framework/base/termination.h>
#include <keel/framework/tensor.h>
#include <keel/layers/training/callback.h>

namespace keel {

class Monitor;

// Options of EarlyStopping.
struct EarlyStoppingOptions {
  std::string monitor = "val_loss";  // a name in the logs of an epoch
  double min_delta = 0;              // a smaller change does not count as an improvement
  int64_t patience = 0;  // number of epochs without improvement after which training ends
  int64_t verbose = 0;   // 1: print when training ends and what is restored
  // Selects which values are better: "min", "max", or "auto" for Metric::direction() of the metric
  // with this name. With "auto", lower is better for other names that end in "loss".
  std::string mode = "auto";
  std::optional<double> baseline = {};  // only values better than this reset the patience
  // Restores the weights of the best epoch at the end of training; the optimizer state is not
  // restored. If a run is resumed from a backup of a run without this option, only weights better
  // than the best value before the backup are restored.
  bool restore_best_weights = false;
  int64_t start_from_epoch = 0;  // earlier epochs are not monitored
};

// Ends training when a monitored value stops improving (keras.callbacks.EarlyStopping).
//
// Throws ValueError
// - from the constructor for an unknown mode or a negative patience;
// - when training begins, if mode "auto" cannot determine the direction;
// - after an epoch, if the logs do not contain the monitored name; the message lists the names in
//   the logs.
//
// For a "val_" name, epochs without validation (FitOptions::validation_freq) are not counted.
class EarlyStoppingCallback final : public Callback {
 public:
  using Options = EarlyStoppingOptions;
  explicit EarlyStoppingCallback(Options options);
  ~EarlyStoppingCallback() override;

  // Returns the epoch with the best value so far; the first monitored epoch until a value is
  // recorded.
  int64_t best_epoch() const { return best_epoch_; }
  // Returns the epoch after which this callback ended training, if it did.
  std::optional<int64_t> stopped_epoch() const { return stopped_epoch_; }

  void on_train_begin() override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_end(const Logs&) override;
  // Returns and restores the values that a resumed run needs; see Callback.
  State state() const override;
  void set_state(const State& state) override;

 private:
  void keep_weights(int64_t epoch);

  const Options options_;
  const std::unique_ptr<Monitor> monitor_;
  int64_t wait_ = 0;
  int64_t best_epoch_ = 0;
  std::optional<double> best_;
  std::optional<int64_t> stopped_epoch_;
  std::vector<Tensor> best_weights_;  // in the order of for_each_state_entry
};

// TerminateOnNaN has no options.
struct TerminateOnNaNOptions {};

// Ends fit, without an error, after a step that makes the loss NaN or infinite. A step whose loss
// is NaN changes neither the trained weights nor the metrics. A validation that contains such a
// step reports val_loss as NaN (keras.callbacks.TerminateOnNaN).
class TerminateOnNaNCallback final : public Callback {
 public:
  using Options = TerminateOnNaNOptions;
  explicit TerminateOnNaNCallback(Options) {}  // for Handle, which passes options

  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  bool tolerates_nan() const override { return true; }
};

// Options of TerminateOnSignal.
struct TerminateOnSignalOptions {
  // The number of batches between the exchanges by which the processes of a job learn of a signal
  // that one of them has received. A single process checks after each batch.
  int64_t frequency = 16;
};

// While fit runs, the first SIGINT or SIGTERM ends it after the current batch and prints the
// signal's name. A BackupAndRestore callback in the same run saves a backup at that step. A second
// signal ends the process immediately (termination.h).
//
//   const callbacks::TerminateOnSignal terminate({});
//   model->fit(data, {.callbacks = {callbacks::BackupAndRestore({.backup_dir = "backup"}),
//                                   terminate}});
//   if (terminate->signal()) return exit_status(*terminate->signal());
//
// Throws ValueError if frequency is less than 1.
class TerminateOnSignalCallback final : public Callback {
 public:
  using Options = TerminateOnSignalOptions;
  explicit TerminateOnSignalCallback(Options options);

  // Returns the signal that ended the run, the same in all processes of a job.
  const std::optional<int>& signal() const { return signal_; }

  void on_train_begin() override;
  void on_train_end(const Logs&) override { signals_.reset(); }
  void on_train_batch_end(int64_t batch, const Logs&) override;

 private:
  const Options options_;
  std::optional<int> signal_;
  std::optional<TerminationSignals> signals_;
};

namespace callbacks {
// Handles to the callbacks, under Keras's names.
using EarlyStopping = Handle<EarlyStoppingCallback>;
using TerminateOnNaN = Handle<TerminateOnNaNCallback>;
using TerminateOnSignal = Handle<TerminateOnSignalCallback>;
}  // namespace callbacks

}  // namespace keel
