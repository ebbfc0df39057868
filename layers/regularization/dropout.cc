#include <keel/layers/registry.h>
#include <keel/layers/regularization/internal/noise.h>
#include <keel/layers/regularization/regularization.h>

namespace keel {

DropoutLayer::DropoutLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {
  noise::check_rate(options_.rate, false, caller());
  noise::check_shape(options_.noise_shape, caller());
}

Tensor DropoutLayer::perturb(const Tensor& x, const RandomNumbers& random) const {
  if (!options_.noise_shape) return noise::dropout(x, options_.rate, random);
  const Shape shape = noise::shape_for(x.shape(), *options_.noise_shape, caller());
  return noise::dropout(x, options_.rate, shape, random);
}

KEEL_REGISTER(Layer, DropoutLayer, .package = "keras", .call = "inputs, training")

}  // namespace keel
