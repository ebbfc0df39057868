// TerminateOnNaN: ends training when the loss is not finite (keras.callbacks.TerminateOnNaN).
#pragma once

#include <keel/layers/training/callback.h>

namespace keel {

// TerminateOnNaN has no options.
struct TerminateOnNaNOptions {};

// Ends fit, without an error, after a step that makes the loss NaN or infinite. A step whose loss
// is NaN changes neither the trained weights nor the metrics. A validation that contains such a
// step reports val_loss as NaN.
class TerminateOnNaNCallback final : public Callback {
 public:
  using Options = TerminateOnNaNOptions;
  explicit TerminateOnNaNCallback(Options) {}

  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  bool tolerates_nan() const override { return true; }
};

namespace callbacks {
using TerminateOnNaN = Handle<TerminateOnNaNCallback>;
}

}  // namespace keel
