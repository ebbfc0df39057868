#include <keel/layers/internal/cast.h>
#include <keel/layers/internal/spatial_layout.h>
#include <keel/layers/pooling/pooling.h>
#include <keel/layers/registry.h>

namespace keel {

template <ClassName kName, int N, PoolingKind kKind>
GlobalPoolingLayer<kName, N, kKind>::GlobalPoolingLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  spatial_layout(N, options_.data_format, caller());  // throws for an unknown name
}

template <ClassName kName, int N, PoolingKind kKind>
Tensor GlobalPoolingLayer<kName, N, kKind>::call(const Tensor& input, const CallContext&) {
  const SpatialLayout layout = spatial_layout(N, options_.data_format, caller());
  layout.check_rank(input.shape(), caller());
  const Tensor x = as_dtype(input, dtype());
  if constexpr (kKind == PoolingKind::kMax) {
    return ops::max(x, layout.spatial_axes(), options_.keepdims);
  } else {
    return ops::mean(x, layout.spatial_axes(), options_.keepdims);
  }
}

template class GlobalPoolingLayer<"GlobalMaxPooling1D", 1, PoolingKind::kMax>;
template class GlobalPoolingLayer<"GlobalMaxPooling2D", 2, PoolingKind::kMax>;
template class GlobalPoolingLayer<"GlobalMaxPooling3D", 3, PoolingKind::kMax>;
template class GlobalPoolingLayer<"GlobalAveragePooling2D", 2, PoolingKind::kAverage>;
template class GlobalPoolingLayer<"GlobalAveragePooling3D", 3, PoolingKind::kAverage>;

KEEL_REGISTER(Layer, GlobalMaxPooling1DLayer, .package = "keras")
KEEL_REGISTER(Layer, GlobalMaxPooling2DLayer, .package = "keras")
KEEL_REGISTER(Layer, GlobalMaxPooling3DLayer, .package = "keras")
KEEL_REGISTER(Layer, GlobalAveragePooling2DLayer, .package = "keras")
KEEL_REGISTER(Layer, GlobalAveragePooling3DLayer, .package = "keras")

}  // namespace keel
