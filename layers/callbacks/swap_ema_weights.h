// SwapEMAWeights: evaluates the averages of the weights (keras.callbacks).
#pragma once

#include <vector>

#include <keel/framework/tensor.h>
#include <keel/layers/training/callback.h>

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

  void on_train_begin() override { of_epoch_.clear(); }
  void on_train_end(const Logs&) override { of_epoch_.clear(); }
  void on_epoch_begin(int64_t) override { swap_out(of_epoch_); }
  void on_epoch_end(int64_t, Logs&) override;
  void on_test_begin() override { swap_in(of_test_); }
  void on_test_end(const Logs&) override { swap_out(of_test_); }
  void on_predict_begin() override { swap_in(of_test_); }
  void on_predict_end() override { swap_out(of_test_); }
  State state() const override;
  void set_state(const State& state) override;

 private:
  // Puts the averages in the weights' place, and the weights into `kept`; and back.
  void swap_in(std::vector<Tensor>& kept);
  void swap_out(std::vector<Tensor>& kept);

  const Options options_;
  // Weights that averages stand for, of two spans that may lie in one another: between two epochs,
  // and while a model is evaluated or predicts. Empty outside of them.
  std::vector<Tensor> of_epoch_, of_test_;
};

namespace callbacks {
using SwapEMAWeights = Handle<SwapEMAWeightsCallback>;
}

}  // namespace keel
