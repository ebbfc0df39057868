// LearningRateScheduler: sets the learning rate at the start of each epoch
// (keras.callbacks.LearningRateScheduler).
#pragma once

#include <functional>

#include <keel/layers/training/callback.h>

namespace keel {

// Options of LearningRateScheduler.
struct LearningRateSchedulerOptions {
  // Returns the learning rate of `epoch`, given the current rate; required (ValueError).
  std::function<double(int64_t epoch, double learning_rate)> schedule = {};
  int64_t verbose = 0;  // 1: print each rate
};

// Sets the rate and adds "learning_rate" to the logs of each epoch. Throws RuntimeError at the
// first epoch if the optimizer's learning rate is a schedule or a function.
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
