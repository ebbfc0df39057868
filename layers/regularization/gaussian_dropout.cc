#include <cmath>

#include <keel/autodiff/ops.h>
#include <keel/layers/registry.h>
#include <keel/layers/regularization/internal/noise.h>
#include <keel/layers/regularization/regularization.h>

namespace keel {

GaussianDropoutLayer::GaussianDropoutLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  noise::check_rate(options_.rate, true, caller());
}

Tensor GaussianDropoutLayer::perturb(const Tensor& x, const RandomNumbers& random) const {
  const double stddev = std::sqrt(options_.rate / (1 - options_.rate));
  return x * noise::normal(x.shape(), x.dtype(), 1, stddev, random);
}

KEEL_REGISTER(Layer, GaussianDropoutLayer, .package = "keras", .call = "inputs, training")

}  // namespace keel
