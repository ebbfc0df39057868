// SwapEMAWeights: evaluates a model with the moving averages of its weights
// (keras.callbacks.SwapEMAWeights).
#pragma once

#include <vector>

#include <keel/framework/tensor.h>
#include <keel/layers/training/callback.h>

namespace keel {

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
