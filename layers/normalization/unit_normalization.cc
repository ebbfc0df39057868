#include <keel/layers/internal/cast.h>
#include <keel/layers/internal/unit_length.h>
#include <keel/layers/normalization/layer_normalization.h>
#include <keel/layers/registry.h>

namespace keel {

Tensor UnitNormalizationLayer::call(const Tensor& input, const CallContext&) {
  constexpr double kLeastLength = 1e-12;
  const Tensor x = as_dtype(input, dtype());
  return unit_length(x, options_.axis.normalized(x.shape(), "UnitNormalization " + name()),
                     kLeastLength);
}

KEEL_REGISTER(Layer, UnitNormalizationLayer, .package = "keras")

}  // namespace keel
