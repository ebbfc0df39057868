#include <keel/layers/internal/cast.h>
#include <keel/layers/pooling/internal/pool.h>
#include <keel/layers/pooling/pooling.h>
#include <keel/layers/registry.h>

namespace keel {

template <ClassName kName, int N, PoolingKind kKind>
AdaptivePoolingLayer<kName, N, kKind>::AdaptivePoolingLayer(Options options)
    : Base(kClassName, std::move(options)) {
  spatial_layout(N, options_.data_format, caller());  // throws for an unknown name
  for (const int64_t size : options_.output_size.values()) {
    if (size <= 0) throw ValueError(caller(), ": output_size must be positive, received ", size);
  }
}

template <ClassName kName, int N, PoolingKind kKind>
Tensor AdaptivePoolingLayer<kName, N, kKind>::call(const Tensor& input, const CallContext&) {
  const SpatialLayout layout = spatial_layout(N, options_.data_format, caller());
  layout.check_rank(input.shape(), caller());
  Shape shape = input.shape();
  for (int i = 0; i < N; ++i) shape = shape.with(layout.spatial_axis(i), options_.output_size[i]);
  if (input.is_symbolic()) return Tensor::symbolic({.shape = shape, .dtype = this->dtype()});
  const auto ranges = [&](int axis, int64_t size) {
    if (size == 0) {
      throw ValueError(caller(), ": an input of shape ", input.shape(),
                       " has nothing to pool; the spatial axes must not be empty");
    }
    return adaptive_ranges(size, options_.output_size[axis]);
  };
  return pool(as_dtype(input, this->dtype()), layout, kKind, ranges);
}

template class AdaptivePoolingLayer<"AdaptiveMaxPooling1D", 1, PoolingKind::kMax>;
template class AdaptivePoolingLayer<"AdaptiveMaxPooling2D", 2, PoolingKind::kMax>;
template class AdaptivePoolingLayer<"AdaptiveMaxPooling3D", 3, PoolingKind::kMax>;
template class AdaptivePoolingLayer<"AdaptiveAveragePooling1D", 1, PoolingKind::kAverage>;
template class AdaptivePoolingLayer<"AdaptiveAveragePooling2D", 2, PoolingKind::kAverage>;
template class AdaptivePoolingLayer<"AdaptiveAveragePooling3D", 3, PoolingKind::kAverage>;

KEEL_REGISTER(Layer, AdaptiveMaxPooling1DLayer, .package = "keras")
KEEL_REGISTER(Layer, AdaptiveMaxPooling2DLayer, .package = "keras")
KEEL_REGISTER(Layer, AdaptiveMaxPooling3DLayer, .package = "keras")
KEEL_REGISTER(Layer, AdaptiveAveragePooling1DLayer, .package = "keras")
KEEL_REGISTER(Layer, AdaptiveAveragePooling2DLayer, .package = "keras")
KEEL_REGISTER(Layer, AdaptiveAveragePooling3DLayer, .package = "keras")

}  // namespace keel
