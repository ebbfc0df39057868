// TerminateOnSignal: ends fit in order when the process receives SIGINT or SIGTERM.
#pragma once

#include <optional>

#include <keel/framework/base/termination.h>
#include <keel/layers/training/callback.h>

namespace keel {

struct TerminateOnSignalOptions {
  // In a job of several processes, batches between the exchanges by which all of them learn of a
  // signal that one has received. A process alone checks after each batch.
  int64_t frequency = 16;
};

// While fit runs, the first SIGINT or SIGTERM ends it after the batch that is being trained, and
// prints the signal's name. A BackupAndRestore callback in the same run keeps a backup of that
// place. A second signal ends the process at once (termination.h).
//
//   const callbacks::TerminateOnSignal terminate({});
//   model->fit(data, {.callbacks = {callbacks::BackupAndRestore({.backup_dir = "backup"}),
//                                   terminate}});
//   if (terminate->signal()) return exit_status(*terminate->signal());
//
// ValueError for a frequency below 1.
class TerminateOnSignalCallback final : public Callback {
 public:
  using Options = TerminateOnSignalOptions;
  explicit TerminateOnSignalCallback(Options options);

  // The signal that ended the run, the same in all processes of a job.
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
