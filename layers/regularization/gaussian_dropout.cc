#include <keel/layers/regularization/gaussian_dropout.h>

#include <cmath>

#include <keel/autodiff/ops.h>
#include <keel/layers/registry.h>

namespace keel {

GaussianDropoutLayer::GaussianDropoutLayer(Options options)
    : NoiseLayer(kClassName, options), options_(std::move(options)) {
  noise::check_rate(options_.rate, true, caller());
}

Tensor GaussianDropoutLayer::disturb(const Tensor& x, const RandomNumbers& random) const {
  const double stddev = std::sqrt(options_.rate / (1 - options_.rate));
  return x * noise::normal(x.shape(), x.dtype(), 1, stddev, random);
}

KEEL_REGISTER(Layer, GaussianDropoutLayer)

}  // namespace keel
