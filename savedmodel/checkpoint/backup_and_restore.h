// BackupAndRestore: resumes an interrupted run of fit (keras.callbacks).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/training/callback.h>
#include <keel/savedmodel/checkpoint/checkpoint_manager.h>

namespace keel {

// Options of BackupAndRestore.
struct BackupAndRestoreOptions {
  std::string backup_dir = {};            // required; one folder per training run
  std::optional<int64_t> save_freq = {};  // number of batches between backups; unset: one per epoch
  bool double_checkpoint = false;         // also keep the previous backup
  bool delete_checkpoint = true;          // remove the backups when training ends
};

// Keeps a backup of the training in backup_dir: the model, including the values that differ between
// replicas, the optimizer, the metrics of an unfinished epoch, the states of the callbacks, and the
// position in the data. If a backup exists when fit begins, fit resumes from it. A program that
// builds and compiles the same model and calls fit with the same data, options and callbacks, in
// the same order, then trains to the same bits as an uninterrupted run, even from the middle of an
// epoch. Datasets must yield the same elements in every run; those before the position are skipped.
// The history holds only the epochs that end in this call.
//
// When callbacks::TerminateOnSignal ends the run, the position after the last batch is saved too.
//
// A backup exists as a whole or not at all (checkpoint.h). In a job of several processes, all of
// them must see the same folder.
//
// Throws ValueError for an empty backup_dir or a save_freq below 1. When fit resumes, throws
// ValueError before anything is restored if the backup is of another model, of other callbacks with
// a state, or of another number of replicas. Throws IoError if the folder cannot be used.
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
  int64_t saved_ = 0;    // number of the latest backup
};

namespace callbacks {
using BackupAndRestore = Handle<BackupAndRestoreCallback>;
}

}  // namespace keel
