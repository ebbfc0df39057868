#include <keel/layers/training/internal/callback_list.h>

#include <algorithm>

namespace keel {

CallbackList::CallbackList(std::vector<CallbackHandle> callbacks, Model* model,
                           CallbackParams params)
    : callbacks_(std::move(callbacks)) {
  for (const CallbackHandle& callback : callbacks_) params.callbacks.push_back(&*callback);
  std::ranges::stable_partition(callbacks_, [](const auto& c) { return !c->runs_last(); });
  call(&Callback::set_model, model);
  call(&Callback::set_params, params);
}

bool CallbackList::tolerates_nan() const {
  return std::ranges::any_of(callbacks_, [](const auto& c) { return c->tolerates_nan(); });
}

}  // namespace keel
