// Callbacks that act on the optimizer or on its averages: LearningRateScheduler, ReduceLROnPlateau
// and SwapEMAWeights (keras.callbacks).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/framework/tensor.h>
#include <keel/layers/training/callback.h>

namespace keel {

class Monitor;

// Options of LearningRateScheduler.
struct LearningRateSchedulerOptions {
  // Returns the learning rate of `epoch`, given the current rate; required (ValueError).
  std::function<double(int64_t epoch, double learning_rate)> schedule = {};
  int64_t verbose = 0;  // 1: print each rate
};

// Sets the learning rate at the start of each epoch, and adds "learning_rate" to the logs of the
// epoch (keras.callbacks.LearningRateScheduler). Throws RuntimeError at the first epoch if the
// optimizer's learning rate is a schedule or a function.
class LearningRateSchedulerCallback final : public Callback {
 public:
  using Options = LearningRateSchedulerOptions;
  explicit LearningRateSchedulerCallback(Options options);

  void on_epoch_begin(int64_t epoch) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;

 private:
  const Options options_;
};

// Options of ReduceLROnPlateau.
struct ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";  // a name in the logs of an epoch
  double factor = 0.1;               // new rate = rate * factor; in (0, 1)
  int64_t patience = 10;  // number of epochs without improvement after which the rate is reduced
  int64_t verbose = 0;    // 1: print each new rate
  // Selects which values are better: "min", "max" or "auto", as for EarlyStopping.
  std::string mode = "auto";
  double min_delta = 1e-4;  // a smaller change does not count as an improvement
  int64_t cooldown = 0;     // epochs after a reduction that are not counted
  double min_lr = 0;        // lower bound of the rate
};

// Lowers the learning rate when a monitored value stops improving
// (keras.callbacks.ReduceLROnPlateau). Adds "learning_rate", the rate of the epoch, to the logs.
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
  ~ReduceLROnPlateauCallback() override;

  void on_train_begin() override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  // Returns and restores the values that a resumed run needs; see Callback.
  State state() const override;
  void set_state(const State& state) override;

 private:
  void reduce(int64_t epoch);

  const Options options_;
  const std::unique_ptr<Monitor> monitor_;
  int64_t wait_ = 0;
  int64_t cooldown_ = 0;  // remaining epochs of the cooldown
  std::optional<double> best_;
};

namespace callbacks {
// Handles to the callbacks, under Keras's names.
using LearningRateScheduler = Handle<LearningRateSchedulerCallback>;
using ReduceLROnPlateau = Handle<ReduceLROnPlateauCallback>;
}  // namespace callbacks

// Options of SwapEMAWeights.
struct SwapEMAWeightsOptions {
  // If true, the averages also replace the weights from the end of an epoch to the beginning of the
  // next one. Callbacks that follow in the list, such as one that saves the model, then see the
  // averages.
  bool swap_on_epoch = false;
};

// Requires an optimizer with use_ema. While evaluate, predict and the validation inside fit run,
// the trained weights are replaced by their averages. Throws RuntimeError at that time if the
// optimizer has no averages.
class SwapEMAWeightsCallback final : public Callback {
 public:
  using Options = SwapEMAWeightsOptions;
  explicit SwapEMAWeightsCallback(Options options) : options_(options) {}

  void on_train_begin() override { of_epoch_.clear(); }
  void on_train_end(const Logs&) override { of_epoch_.clear(); }
  void on_epoch_begin(int64_t) override { swap_out(of_epoch_); }
  void on_epoch_end(int64_t, Logs&) override;
  void on_test_begin() override { swap_in(of_test_); }
  void on_test_end(const Logs&) override { swap_out(of_test_); }
  void on_predict_begin() override { swap_in(of_test_); }
  void on_predict_end() override { swap_out(of_test_); }
  // Returns and restores the values that a resumed run needs; see Callback.
  State state() const override;
  void set_state(const State& state) override;

 private:
  // swap_in() replaces the weights by their averages and saves the weights in `kept`; swap_out()
  // assigns `kept` to the weights and clears it.
  void swap_in(std::vector<Tensor>& kept);
  void swap_out(std::vector<Tensor>& kept);

  const Options options_;
  // Saved weights of two spans that may be nested: between two epochs, and during an evaluation or
  // prediction. Empty outside of these spans.
  std::vector<Tensor> of_epoch_, of_test_;
};

namespace callbacks {
using SwapEMAWeights = Handle<SwapEMAWeightsCallback>;
}

}  // namespace keel
