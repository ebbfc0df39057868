#include <keel/layers/training/callback.h>

#include <keel/framework/base/errors.h>

namespace keel {

Model& Callback::model() const {
  if (model_ == nullptr)
    throw RuntimeError(
        "Callback: model() is not available; call it only while fit, evaluate or predict runs");
  return *model_;
}

}  // namespace keel
