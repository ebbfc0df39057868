#include "layers/activation/leaky_relu.h"

#include "layers/activations.h"
#include "layers/cast.h"

namespace keel {

Tensor LeakyReLULayer::call(const Tensor& input, const CallContext&) {
  const Tensor x = is_floating(input.dtype()) ? input : as_dtype(input, dtype());
  return activations::leaky_relu(x, options_.negative_slope);
}

}  // namespace keel
