// ReduceLROnPlateau: lowers the learning rate when a monitored value stops improving
// (keras.callbacks.ReduceLROnPlateau).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <keel/layers/callbacks/monitor.h>

namespace keel {

// Options of ReduceLROnPlateau.
struct ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";  // a name in the logs of an epoch
  double factor = 0.1;               // new rate = rate * factor; in (0, 1)
  int64_t patience = 10;  // number of epochs without improvement after which the rate is reduced
  int64_t verbose = 0;    // 1: print each new rate
  // "min" or "max": which values are better; "auto": determined by the monitored metric
  // (monitor.h).
  std::string mode = "auto";
  double min_delta = 1e-4;  // a smaller change does not count as an improvement
  int64_t cooldown = 0;     // epochs after a reduction that are not counted
  double min_lr = 0;        // lower bound of the rate
};

// Adds "learning_rate", the rate of the epoch, to the logs.
//
// Throws ValueError
// - from the constructor for an unknown mode, a negative patience or cooldown, or a factor outside
//   (0, 1);
// - when training begins, if mode "auto" cannot determine the direction;
// - after an epoch, if the logs do not contain the monitored name.
//
// Throws RuntimeError if the optimizer's learning rate is a schedule or a function.
class ReduceLROnPlateauCallback final : public Callback {
 public:
  using Options = ReduceLROnPlateauOptions;
  explicit ReduceLROnPlateauCallback(Options options);

  void on_train_begin() override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  State state() const override;
  void set_state(const State& state) override;

 private:
  void reduce(int64_t epoch);

  const Options options_;
  Monitor monitor_;
  int64_t wait_ = 0;
  int64_t cooldown_ = 0;  // remaining epochs of the cooldown
  std::optional<double> best_;
};

namespace callbacks {
using ReduceLROnPlateau = Handle<ReduceLROnPlateauCallback>;
}

}  // namespace keel
