// CallbackList: calls several callbacks as one, in their order, those that run last after the rest.
#pragma once

#include <vector>

#include <keel/layers/training/callback.h>

namespace keel {

class CallbackList {
 public:
  CallbackList(std::vector<CallbackHandle> callbacks, Model* model, CallbackParams params);

  bool tolerates_nan() const;

  // Calls `member` of each: list.call(&Callback::on_epoch_end, epoch, logs).
  template <class... Parameters, class... Args>
  void call(void (Callback::*member)(Parameters...), Args&&... args) const {
    for (const CallbackHandle& callback : callbacks_) ((*callback).*member)(args...);
  }

 private:
  std::vector<CallbackHandle> callbacks_;
};

}  // namespace keel
