// LearningRateScheduler: sets the learning rate at the start of each epoch (keras.callbacks).
#pragma once

#include <functional>

#include <keel/layers/training/callback.h>

namespace keel {

struct LearningRateSchedulerOptions {
  // The rate of `epoch`, from that of the epoch before; required (ValueError).
  std::function<double(int64_t epoch, double learning_rate)> schedule = {};
  int64_t verbose = 0;  // 1: says each rate
};

// Adds "learning_rate" to the logs. RuntimeError, at the first epoch, if the optimizer's rate is a
// schedule or a function.
class LearningRateSchedulerCallback final : public Callback {
 public:
  using Options = LearningRateSchedulerOptions;
  explicit LearningRateSchedulerCallback(Options options);

  void on_epoch_begin(int64_t epoch) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;

 private:
  const Options options_;
};

namespace callbacks {
using LearningRateScheduler = Handle<LearningRateSchedulerCallback>;
}

}  // namespace keel
