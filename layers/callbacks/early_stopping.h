// EarlyStopping: ends training when a value no longer gets better (keras.callbacks).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <keel/framework/tensor.h>
#include <keel/layers/callbacks/monitor.h>

namespace keel {

struct EarlyStoppingOptions {
  std::string monitor = "val_loss";  // a name in the logs of an epoch
  double min_delta = 0;              // a smaller change is none
  int64_t patience = 0;              // epochs without getting better that are borne
  int64_t verbose = 0;               // 1: says when it ends training, and what it restores
  // "min" or "max" is better; "auto": as the metric of that name says (monitor.h).
  std::string mode = "auto";
  std::optional<double> baseline = {};  // patience starts anew only for values better than this
  // At the end of training; optimizer state stays as it is. A run that is taken up from the backup
  // of one without it restores only weights that are better than those before.
  bool restore_best_weights = false;
  int64_t start_from_epoch = 0;  // epochs before this one are not looked at
};

// ValueError for another mode or a negative patience; when training begins, if mode "auto" cannot
// tell what is better; and, after an epoch, if the logs have no value of that name; the error lists
// those there are. Epochs without validation (FitOptions::validation_freq) do not count for values
// of the validation.
class EarlyStoppingCallback final : public Callback {
 public:
  using Options = EarlyStoppingOptions;
  explicit EarlyStoppingCallback(Options options);

  // The first that was looked at until another is better.
  int64_t best_epoch() const { return best_epoch_; }
  // The epoch after which it ended training, if it did.
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
