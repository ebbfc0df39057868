// ReduceLROnPlateau: lowers the learning rate when a value no longer gets better (keras.callbacks).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <keel/layers/callbacks/monitor.h>

namespace keel {

struct ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";  // a name in the logs of an epoch
  double factor = 0.1;               // new rate = rate * factor; below 1
  int64_t patience = 10;             // epochs without getting better that are borne
  int64_t verbose = 0;               // 1: says each new rate
  // "min" or "max" is better; "auto": as the metric of that name says (monitor.h).
  std::string mode = "auto";
  double min_delta = 1e-4;  // a smaller change is none
  int64_t cooldown = 0;     // epochs after a new rate that do not count
  double min_lr = 0;        // no rate is below this
};

// Adds "learning_rate", that of the epoch, to the logs. ValueError for another mode, a negative
// patience or cooldown, and a factor outside (0, 1); when training begins, if mode "auto" cannot
// tell what is better; and, after an epoch, if the logs have no value of that name. RuntimeError
// when the optimizer's rate is a schedule or a function.
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
  int64_t cooldown_ = 0;  // epochs of it that are left
  std::optional<double> best_;
};

namespace callbacks {
using ReduceLROnPlateau = Handle<ReduceLROnPlateauCallback>;
}

}  // namespace keel
