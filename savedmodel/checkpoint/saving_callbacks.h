// Callbacks that write files: BackupAndRestore resumes an interrupted run of fit, ModelCheckpoint
// saves the model during fit (keras.callbacks).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/training/callback.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>

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

class Monitor;

// Options of ModelCheckpoint.
struct ModelCheckpointOptions {
  // The path passed to save_model or save_weights (saved_model.h), whose suffix selects the format.
  // "{epoch}", counted from 1, "{batch}", the number of batches of the epoch so far, and names of
  // logs are replaced by their values, formatted as in Python:
  // "model-{epoch:02d}-{val_loss:.2f}.h5". Missing folders are created.
  std::string filepath = {};
  std::string monitor = "val_loss";  // a name in the logs
  int64_t verbose = 0;               // 1: print the path of each saved file
  bool save_best_only = false;       // save only if `monitor` is better than ever before
  bool save_weights_only = false;    // call save_weights; the path must end in ".weights.h5"
  // Selects which values are better: "min", "max", or "auto", as for EarlyStopping.
  std::string mode = "auto";
  // The number of batches between saves. If unset, the model is saved after each epoch. The logs of
  // batches contain no validation values, so with save_freq and save_best_only, a validation metric
  // saves nothing; a warning is printed once to stderr.
  std::optional<int64_t> save_freq = {};
  // With save_best_only, nothing is saved until `monitor` is better than this value.
  std::optional<double> initial_value_threshold = {};
  bool include_optimizer = true;  // see SaveOptions
};

// Saves the model after each epoch or every save_freq batches.
//
// Throws ValueError for an empty path, for a path that does not end in ".weights.h5" with
// save_weights_only, for an unknown mode, and for a save_freq below 1. With save_best_only, throws
// ValueError when training begins if mode "auto" cannot determine what is better. While training,
// throws ValueError if the path contains a name that is not in the logs or an invalid number
// format, and, with save_best_only, if the logs do not contain `monitor`.
class ModelCheckpointCallback final : public Callback {
 public:
  using Options = ModelCheckpointOptions;
  explicit ModelCheckpointCallback(Options options);
  ~ModelCheckpointCallback() override;

  // Returns the value of `monitor` of the best saved model, or initial_value_threshold.
  std::optional<double> best() const { return best_; }

  void on_train_begin() override;
  void on_epoch_begin(int64_t epoch) override { epoch_ = epoch; }
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  // Return and set the best value, for resumed runs.
  State state() const override;
  void set_state(const State& state) override;

 private:
  // Returns true if the logs are to be saved, and stores the monitored value if it is the best.
  bool is_to_be_saved(const Logs& logs, const std::string& path);
  void save(int64_t batch, const Logs& logs);

  const Options options_;
  const std::unique_ptr<Monitor> monitor_;
  int64_t epoch_ = 0;
  int64_t batches_ = 0;  // since the last save
  bool warned_ = false;  // whether the warning about missing `monitor` values was printed
  std::optional<double> best_;
};

namespace callbacks {
using ModelCheckpoint = Handle<ModelCheckpointCallback>;
}

// Returns `text` with each "{name}" or "{name:format}" replaced by the value of `name`. Formats are
// those of Python for numbers, [0][width][.precision][d|e|f|g]; "{{" and "}}" stand for braces.
// Throws ValueError for an unknown name or an invalid format.
std::string format_logs(const std::string& text, const Logs& values);

}  // namespace keel
