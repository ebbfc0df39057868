// TerminateOnNaN: ends training when the loss is no number (keras.callbacks).
#pragma once

#include <keel/layers/training/callback.h>

namespace keel {

struct TerminateOnNaNOptions {};

// Ends fit, without an error, after a step that leaves the loss NaN or infinite. A step whose loss
// is NaN does not change the trained weights, nor the metrics; a validation with such a step has
// val_loss NaN.
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
