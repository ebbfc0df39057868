// BackupAndRestore: goes on with a run of fit that was cut off (keras.callbacks).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/training/callback.h>
#include <keel/savedmodel/checkpoint/checkpoint_manager.h>

namespace keel {

struct BackupAndRestoreOptions {
  std::string backup_dir = {};            // one for each training run
  std::optional<int64_t> save_freq = {};  // in batches; unset: after each epoch
  bool double_checkpoint = false;         // keep the backup before the last one, too
  bool delete_checkpoint = true;          // remove the backups when training ends
};

// Keeps a backup of the training in backup_dir: the model, also what each replica has of its own,
// the optimizer, the metrics of an epoch that is not over, the states of the callbacks, and the
// place in the data. If there is one when fit begins, fit goes on from there. A program that builds
// and compiles the same model and calls fit with the same data, options and callbacks, in the same
// order, then trains to the same bits as if it had never stopped, also from the midst of an epoch.
// Datasets must give the same elements each time; those before the place are passed over. The
// history has the epochs that end in this call.
//
// When callbacks::TerminateOnSignal ends the run, the place after the last batch is kept, too.
//
// A backup is there whole or not at all (checkpoint.h). In a job of several processes all of them
// see the same folder. ValueError for an empty backup_dir or a save_freq below 1, and, when it goes
// on, before anything is restored, if the backup is of another model, of other callbacks that have
// a state or of another number of replicas; IoError if the folder cannot be used.
class BackupAndRestoreCallback final : public Callback {
 public:
  using Options = BackupAndRestoreOptions;
  explicit BackupAndRestoreCallback(Options options);

  void on_train_begin() override;
  void on_train_end(const Logs&) override;
  void on_epoch_begin(int64_t epoch) override { epoch_ = epoch; }
  void on_epoch_end(int64_t epoch, Logs&) override;
  void on_train_batch_end(int64_t batch, const Logs&) override;
  bool runs_last() const override { return true; }

 private:
  using Values = std::map<std::string, Tensor>;
  std::string progress_path(const std::string& checkpoint) const;
  void save(int64_t epoch, int64_t step);
  Values progress(int64_t epoch, int64_t step) const;
  std::vector<Values> states_for_callbacks(const Values& progress) const;
  void restore(const std::string& checkpoint, const Values& progress);
  void remove_stale_progress() const;

  const Options options_;
  std::optional<CheckpointManager> checkpoints_;
  int64_t epoch_ = 0;
  int64_t batches_ = 0;  // since training began
  int64_t saved_ = 0;    // number of the last backup
};

namespace callbacks {
using BackupAndRestore = Handle<BackupAndRestoreCallback>;
}

}  // namespace keel
