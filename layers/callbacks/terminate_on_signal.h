// TerminateOnSignal: ends fit gracefully when the process receives SIGINT or SIGTERM.
#pragma once

#include <optional>

#include <keel/framework/base/termination.h>
#include <keel/layers/training/callback.h>

namespace keel {

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
using TerminateOnSignal = Handle<TerminateOnSignalCallback>;
}

}  // namespace keel
