// ModelCheckpoint: saves the model while fit runs (keras.callbacks).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <keel/layers/callbacks/monitor.h>

namespace keel {

struct ModelCheckpointOptions {
  // Where save_model, or save_weights, writes (saved_model.h); the suffix chooses the format.
  // "{epoch}", counted from 1, "{batch}", the batches of the epoch so far, and names of logs stand
  // for their values, formatted as in Python: "model-{epoch:02d}-{val_loss:.2f}.h5". Folders that
  // are missing are made.
  std::string filepath = {};
  std::string monitor = "val_loss";  // a name in the logs
  int64_t verbose = 0;               // 1: says what it saves, and where
  bool save_best_only = false;       // only where `monitor` is better than ever before
  bool save_weights_only = false;    // to a ".weights.h5" file
  // "min" or "max" is better; "auto": as the metric of that name says (monitor.h).
  std::string mode = "auto";
  // In batches; unset: after each epoch. Logs of batches have no values of the validation: with
  // save_best_only, which then saves nothing, the standard error says so once.
  std::optional<int64_t> save_freq = {};
  // Nothing is saved before `monitor` is better than this; for save_best_only.
  std::optional<double> initial_value_threshold = {};
  bool include_optimizer = true;  // as save_model's
};

// ValueError for an empty path, one that does not end in ".weights.h5" with save_weights_only,
// another mode or a save_freq below 1; with save_best_only, when training begins, if mode "auto"
// cannot tell what is better; and while training for a name in the path that the logs lack or a
// format that numbers do not have, or, with save_best_only, if the logs have no `monitor`.
class ModelCheckpointCallback final : public Callback {
 public:
  using Options = ModelCheckpointOptions;
  explicit ModelCheckpointCallback(Options options);

  std::optional<double> best() const { return best_; }  // of `monitor` in a saved model

  void on_train_begin() override;
  void on_epoch_begin(int64_t epoch) override { epoch_ = epoch; }
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  State state() const override;
  void set_state(const State& state) override;

 private:
  // And takes note of the value if it is the best.
  bool is_to_be_saved(const Logs& logs, const std::string& path);
  void save(int64_t batch, const Logs& logs);

  const Options options_;
  Monitor monitor_;
  int64_t epoch_ = 0;
  int64_t batches_ = 0;  // since the last one saved
  bool warned_ = false;  // that `monitor` is never in the logs of a batch
  std::optional<double> best_;
};

namespace callbacks {
using ModelCheckpoint = Handle<ModelCheckpointCallback>;
}

// `text` with each "{name}" or "{name:format}" replaced by the value of `name`. Formats are
// Python's for numbers: [0][width][.precision][d|e|f|g]; "{{" and "}}" are braces. ValueError for
// an unknown name or format.
std::string format_logs(const std::string& text, const Logs& values);

}  // namespace keel
