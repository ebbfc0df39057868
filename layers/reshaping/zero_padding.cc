#include <keel/layers/internal/spatial_layout.h>
#include <keel/layers/registry.h>
#include <keel/layers/reshaping/internal/ends.h>
#include <keel/layers/reshaping/padding.h>

namespace keel {

template <ClassName kName, int N>
ZeroPaddingLayer<kName, N>::ZeroPaddingLayer(Options options)
    : Base(kClassName, std::move(options)) {
  spatial_layout(N, options_.data_format, caller());  // throws for an unknown name
  check_ends(options_.padding, "padding", caller());
}

template <ClassName kName, int N>
Tensor ZeroPaddingLayer<kName, N>::call(const Tensor& x, const CallContext&) {
  const SpatialLayout layout = spatial_layout(N, options_.data_format, caller());
  layout.check_rank(x.shape(), caller());
  Tensor out = x;
  for (int i = 0; i < N; ++i) {
    const auto [before, after] = ends_of(options_.padding)[i];
    if (before + after > 0) out = ops::pad(out, layout.spatial_axis(i), before, after);
  }
  return out;
}

template class ZeroPaddingLayer<"ZeroPadding1D", 1>;
template class ZeroPaddingLayer<"ZeroPadding2D", 2>;
template class ZeroPaddingLayer<"ZeroPadding3D", 3>;

KEEL_REGISTER(Layer, ZeroPadding1DLayer, .package = "keras")
KEEL_REGISTER(Layer, ZeroPadding2DLayer, .package = "keras")
KEEL_REGISTER(Layer, ZeroPadding3DLayer, .package = "keras")

}  // namespace keel
