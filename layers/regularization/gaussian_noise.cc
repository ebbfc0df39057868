#include <keel/autodiff/ops.h>
#include <keel/layers/registry.h>
#include <keel/layers/regularization/internal/noise.h>
#include <keel/layers/regularization/regularization.h>

namespace keel {

GaussianNoiseLayer::GaussianNoiseLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  if (!(options_.stddev >= 0 && options_.stddev <= 1)) {
    throw ValueError(caller(), ": stddev must be in [0, 1], received ", options_.stddev);
  }
}

Tensor GaussianNoiseLayer::perturb(const Tensor& x, const RandomNumbers& random) const {
  return x + noise::normal(x.shape(), x.dtype(), 0, options_.stddev, random);
}

KEEL_REGISTER(Layer, GaussianNoiseLayer, .package = "keras", .call = "inputs, training")

}  // namespace keel
