#include "layers/activation/elu.h"

#include "layers/activations.h"
#include "layers/cast.h"

namespace keel {

Tensor ELULayer::call(const Tensor& input, const CallContext&) {
  const Tensor x = is_floating(input.dtype()) ? input : as_dtype(input, dtype());
  return activations::elu(x, options_.alpha);
}

}  // namespace keel
