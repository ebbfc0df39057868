#include <keel/layers/registry.h>
#include <keel/layers/regularization/internal/noise.h>
#include <keel/layers/regularization/regularization.h>

namespace keel {

SpatialDropout1DLayer::SpatialDropout1DLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  noise::check_rate(options_.rate, false, caller());
}

Tensor SpatialDropout1DLayer::perturb(const Tensor& x, const RandomNumbers& random) const {
  if (x.rank() != 3) {
    throw ValueError(caller(), ": input must be [batch, steps, features], received shape ",
                     x.shape());
  }
  return noise::dropout(x, options_.rate, x.shape().with(1, 1), random);
}

KEEL_REGISTER(Layer, SpatialDropout1DLayer, .package = "keras", .call = "inputs, training",
              .ignored_keys = "noise_shape=null")

}  // namespace keel
