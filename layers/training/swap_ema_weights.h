// SwapEMAWeights: evaluates the averages of the weights (keras.callbacks).
#pragma once

#include <vector>

#include "framework/tensor.h"
#include "layers/training/callback.h"

namespace keel {

struct SwapEMAWeightsOptions {
  // Also from the end of an epoch to the beginning of the next one, for callbacks behind this one,
  // as one that saves the model.
  bool swap_on_epoch = false;
};

// For optimizers with use_ema: while evaluate, predict and the validation inside fit run, the
// trained weights are their averages. RuntimeError then for an optimizer without.
class SwapEMAWeightsCallback final : public Callback {
 public:
  using Options = SwapEMAWeightsOptions;
  explicit SwapEMAWeightsCallback(Options options) : options_(options) {}

  void on_train_begin() override { weights_.clear(); }
  void on_epoch_begin(int64_t) override { swap_out(); }
  void on_epoch_end(int64_t, Logs&) override;
  void on_test_begin() override { swap_in(); }
  void on_test_end(const Logs&) override { swap_out(); }
  void on_predict_begin() override { swap_in(); }
  void on_predict_end() override { swap_out(); }
  State state() const override;
  void set_state(const State& state) override;

 private:
  void swap_in();
  void swap_out();

  const Options options_;
  std::vector<Tensor> weights_;  // those that the averages stand for; none when they do not
};

namespace callbacks {
using SwapEMAWeights = Handle<SwapEMAWeightsCallback>;
}

}  // namespace keel
