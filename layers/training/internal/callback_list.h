// CallbackList: forwards each event to all callbacks of a run.
#pragma once

#include <vector>

#include <keel/layers/training/callback.h>

namespace keel {

// Calls callbacks in the user's order; those with runs_last() are called after the others.
class CallbackList {
 public:
  // Sets the model and the params of each callback.
  CallbackList(std::vector<CallbackHandle> callbacks, Model* model, CallbackParams params);

  // Returns true if any callback tolerates NaN losses (Callback::tolerates_nan).
  bool tolerates_nan() const;

  // Calls `member` of each callback: list.call(&Callback::on_epoch_end, epoch, logs).
  template <class... Parameters, class... Args>
  void call(void (Callback::*member)(Parameters...), Args&&... args) const {
    for (const CallbackHandle& callback : callbacks_) ((*callback).*member)(args...);
  }

 private:
  std::vector<CallbackHandle> callbacks_;
};

}  // namespace keel
