// EarlyStopping: ends training when a monitored value stops improving
// (keras.callbacks.EarlyStopping).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <keel/framework/tensor.h>
#include <keel/layers/callbacks/monitor.h>

namespace keel {

// Options of EarlyStopping.
struct EarlyStoppingOptions {
  std::string monitor = "val_loss";  // a name in the logs of an epoch
  double min_delta = 0;              // a smaller change does not count as an improvement
  int64_t patience = 0;  // number of epochs without improvement after which training ends
  int64_t verbose = 0;   // 1: print when training ends and what is restored
  // Selects which values are better: "min", "max", or "auto" for those of the metric (monitor.h).
  std::string mode = "auto";
  std::optional<double> baseline = {};  // only values better than this reset the patience
  // Restores the weights of the best epoch at the end of training; the optimizer state is not
  // restored. If a run is resumed from a backup of a run without this option, only weights better
  // than the best value before the backup are restored.
  bool restore_best_weights = false;
  int64_t start_from_epoch = 0;  // earlier epochs are not monitored
};

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

  // Returns the epoch with the best value so far; the first monitored epoch until a value is
  // recorded.
  int64_t best_epoch() const { return best_epoch_; }
  // Returns the epoch after which this callback ended training, if it did.
  std::optional<int64_t> stopped_epoch() const { return stopped_epoch_; }

  void on_train_begin() override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_end(const Logs&) override;
  State state() const override;
  void set_state(const State& state) override;

 private:
  void keep_weights(int64_t epoch);

  const Options options_;
  Monitor monitor_;
  int64_t wait_ = 0;
  int64_t best_epoch_ = 0;
  std::optional<double> best_;
  std::optional<int64_t> stopped_epoch_;
  std::vector<Tensor> best_weights_;  // in the order of for_each_state_entry
};

namespace callbacks {
using EarlyStopping = Handle<EarlyStoppingCallback>;
}

}  // namespace keel
