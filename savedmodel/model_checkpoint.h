// ModelCheckpoint: saves the model while fit runs (keras.callbacks).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "layers/training/callback.h"

namespace keel {

struct ModelCheckpointOptions {
  // Where save_model (saved_model.h) writes; the suffix chooses the format. "{epoch}", counted
  // from 1, "{batch}", the batches of the epoch so far, and names of logs stand for their values,
  // formatted as in Python: "model-{epoch:02d}-{val_loss:.2f}.h5".
  std::string filepath = {};
  std::string monitor = "val_loss";  // a name in the logs
  bool save_best_only = false;       // only where `monitor` is better than ever before
  bool save_weights_only = false;    // true is not offered (NotImplementedError)
  // "min" or "max" is better; "auto": "max" for accuracy, auc, precision and recall, by name.
  std::string mode = "auto";
  std::optional<int64_t> save_freq = {};  // in batches; unset: after each epoch
  // Nothing is saved before `monitor` is better than this; for save_best_only.
  std::optional<double> initial_value_threshold = {};
  bool include_optimizer = false;  // as save_model's
};

// ValueError for an empty path, another mode or a save_freq below 1, and while training for a
// name in the path that the logs lack or a format that numbers do not have, or, with
// save_best_only, if the logs have no `monitor`.
class ModelCheckpointCallback final : public Callback {
 public:
  using Options = ModelCheckpointOptions;
  explicit ModelCheckpointCallback(Options options);

  std::optional<double> best() const { return best_; }  // of `monitor` in a saved model

  void on_train_begin() override;
  void on_epoch_begin(int64_t epoch) override { epoch_ = epoch; }
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;

 private:
  bool is_better(const Logs& logs);
  void save(int64_t batch, const Logs& logs);

  const Options options_;
  const bool larger_is_better_;
  int64_t epoch_ = 0;
  int64_t batches_ = 0;  // since the last one saved
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
