#include <keel/layers/training/callback.h>

#include <keel/framework/base/errors.h>

namespace keel {

Model& Callback::model() const {
  if (model_ == nullptr) throw RuntimeError("Callback: has no model outside fit and evaluate");
  return *model_;
}

}  // namespace keel
