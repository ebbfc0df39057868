#include "layers/training/callback_list.h"

namespace keel {

CallbackList::CallbackList(std::vector<CallbackHandle> callbacks, Model* model,
                           const CallbackParams& params)
    : callbacks_(std::move(callbacks)) {
  call(&Callback::set_model, model);
  call(&Callback::set_params, params);
}

}  // namespace keel
