#include "layers/normalization/rescaling.h"

#include "layers/cast.h"

namespace keel {

Tensor RescalingLayer::call(const Tensor& x, const CallContext&) {
  return as_dtype(x, dtype()) * options_.scale.tensor(dtype()) + options_.offset.tensor(dtype());
}

}  // namespace keel
