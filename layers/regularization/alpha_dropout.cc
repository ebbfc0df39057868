#include <cmath>

#include <keel/autodiff/ops.h>
#include <keel/layers/registry.h>
#include <keel/layers/regularization/internal/noise.h>
#include <keel/layers/regularization/regularization.h>

namespace keel {

AlphaDropoutLayer::AlphaDropoutLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  noise::check_rate(options_.rate, true, caller());
  noise::check_shape(options_.noise_shape, caller());
}

Tensor AlphaDropoutLayer::perturb(const Tensor& x, const RandomNumbers& random) const {
  // The limit of selu at minus infinity, -scale * alpha.
  constexpr double kLeastOfSelu = -1.0507009873554805 * 1.6732632423543772;
  const double rate = options_.rate;
  const double a = 1 / std::sqrt((1 - rate) * (1 + rate * kLeastOfSelu * kLeastOfSelu));
  const double b = -a * kLeastOfSelu * rate;
  const Shape shape = options_.noise_shape
                          ? noise::shape_for(x.shape(), *options_.noise_shape, caller())
                          : x.shape();
  const Tensor kept = noise::kept(shape, x.dtype(), rate, random);
  const Tensor offset = ops::shift(ops::scale(kept, -a * kLeastOfSelu), a * kLeastOfSelu + b);
  return x * ops::scale(kept, a) + offset;
}

KEEL_REGISTER(Layer, AlphaDropoutLayer, .package = "keras", .call = "inputs, training")

}  // namespace keel
