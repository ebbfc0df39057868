#include "layers/activation/activation.h"

#include "layers/cast.h"

namespace keel {

Tensor ActivationLayer::call(const Tensor& x, const CallContext&) {
  return options_.activation(is_floating(x.dtype()) ? x : as_dtype(x, dtype()));
}

}  // namespace keel
