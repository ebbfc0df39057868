#include <keel/layers/internal/spatial_layout.h>
#include <keel/layers/registry.h>
#include <keel/layers/reshaping/internal/ends.h>
#include <keel/layers/reshaping/padding.h>

namespace keel {
namespace {

SpatialLayout cropping_layout(const CroppingOptions<1>&, const std::string&) { return {}; }
template <int N>
SpatialLayout cropping_layout(const CroppingOptions<N>& options, const std::string& caller) {
  return spatial_layout(N, options.data_format, caller);
}

}  // namespace

template <ClassName kName, int N>
CroppingLayer<kName, N>::CroppingLayer(Options options) : Base(kClassName, std::move(options)) {
  cropping_layout(options_, caller());  // throws for an unknown data format
  check_ends(options_.cropping, "cropping", caller());
}

template <ClassName kName, int N>
Tensor CroppingLayer<kName, N>::call(const Tensor& x, const CallContext&) {
  const SpatialLayout layout = cropping_layout(options_, caller());
  layout.check_rank(x.shape(), caller());
  Tensor out = x;
  for (int i = 0; i < N; ++i) {
    const auto [before, after] = ends_of(options_.cropping)[i];
    const int axis = layout.spatial_axis(i);
    if (x.dim(axis) == kUnknown || before + after == 0) continue;
    if (before + after >= x.dim(axis)) {
      throw ValueError(caller(), ": cropping of ", before, " and ", after,
                       " leaves no steps of an input of shape ", x.shape(), "; crop fewer steps");
    }
    out = ops::slice(out, axis, before, x.dim(axis) - before - after);
  }
  return out;
}

template class CroppingLayer<"Cropping1D", 1>;
template class CroppingLayer<"Cropping2D", 2>;
template class CroppingLayer<"Cropping3D", 3>;

KEEL_REGISTER(Layer, Cropping1DLayer, .package = "keras")
KEEL_REGISTER(Layer, Cropping2DLayer, .package = "keras")
KEEL_REGISTER(Layer, Cropping3DLayer, .package = "keras")

}  // namespace keel
