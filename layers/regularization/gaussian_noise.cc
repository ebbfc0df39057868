#include <keel/layers/regularization/gaussian_noise.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/registry.h>

namespace keel {

GaussianNoiseLayer::GaussianNoiseLayer(Options options)
    : NoiseLayer(kClassName, options), options_(std::move(options)) {
  if (!(options_.stddev >= 0 && options_.stddev <= 1)) {
    throw ValueError(caller(), ": stddev must be in [0, 1], received ", options_.stddev);
  }
}

Tensor GaussianNoiseLayer::disturb(const Tensor& x, const RandomNumbers& random) const {
  return x + noise::normal(x.shape(), x.dtype(), 0, options_.stddev, random);
}

KEEL_REGISTER(Layer, GaussianNoiseLayer)

}  // namespace keel
