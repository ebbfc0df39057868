#include <keel/layers/regularization/spatial_dropout.h>

#include <keel/layers/internal/spatial_layout.h>
#include <keel/layers/registry.h>
#include <keel/layers/regularization/internal/noise.h>

namespace keel {

template <ClassName kName, int N>
SpatialDropoutLayer<kName, N>::SpatialDropoutLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  noise::check_rate(options_.rate, false, caller());
  spatial_layout(N, options_.data_format, caller());
}

template <ClassName kName, int N>
Tensor SpatialDropoutLayer<kName, N>::disturb(const Tensor& x, const RandomNumbers& random) const {
  const SpatialLayout layout = spatial_layout(N, options_.data_format, caller());
  layout.check_rank(x.shape(), caller());
  Shape shape = x.shape();
  for (const int axis : layout.spatial_axes()) shape = shape.with(axis, 1);
  return noise::dropout(x, options_.rate, shape, random);
}

template class SpatialDropoutLayer<"SpatialDropout2D", 2>;
template class SpatialDropoutLayer<"SpatialDropout3D", 3>;

KEEL_REGISTER(Layer, SpatialDropout2DLayer, .package = "keras", .call = "inputs, training",
              .ignored_keys = "noise_shape=null")
KEEL_REGISTER(Layer, SpatialDropout3DLayer, .package = "keras", .call = "inputs, training",
              .ignored_keys = "noise_shape=null")

}  // namespace keel
