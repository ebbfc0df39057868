#include <keel/layers/pooling/pooling.h>

#include <algorithm>

#include <keel/layers/internal/cast.h>
#include <keel/layers/pooling/internal/pool.h>
#include <keel/layers/registry.h>

namespace keel {
template <ClassName kName, int N, PoolingKind kKind>
PoolingLayer<kName, N, kKind>::PoolingLayer(Options options)
    : Base(kClassName, std::move(options)) {
  spatial_layout(N, options_.data_format, caller());  // throws for an unknown name
  for (int i = 0; i < N; ++i) {
    const int64_t size = options_.pool_size[i];
    const int64_t stride = options_.strides ? (*options_.strides)[i] : size;
    if (size > 0 && stride > 0) continue;
    throw ValueError(caller(), ": pool_size and strides must be positive, received ", size, " and ",
                     stride);
  }
  if (options_.padding != "valid" && options_.padding != "same") {
    throw ValueError(caller(), ": padding must be 'valid' or 'same', received '", options_.padding,
                     "'");
  }
}

template <ClassName kName, int N, PoolingKind kKind>
Config PoolingLayer<kName, N, kKind>::get_config() const {
  Options written = options_;
  written.strides = options_.strides.value_or(options_.pool_size);
  return to_config(written);
}

template <ClassName kName, int N, PoolingKind kKind>
Tensor PoolingLayer<kName, N, kKind>::call(const Tensor& input, const CallContext&) {
  const SpatialLayout layout = spatial_layout(N, options_.data_format, caller());
  layout.check_rank(input.shape(), caller());
  const Lengths<N> strides = options_.strides.value_or(options_.pool_size);
  const auto ranges = [&](int axis, int64_t size) {
    std::vector<ops::PoolingRange> out =
        window_ranges(size, options_.pool_size[axis], strides[axis], options_.padding == "same");
    if (!out.empty()) return out;
    throw ValueError(caller(), ": a window of ", options_.pool_size[axis],
                     " steps does not fit into an input of shape ", input.shape(),
                     "; pass larger inputs or pad them");
  };
  return pool(as_dtype(input, this->dtype()), layout, kKind, ranges);
}

template class PoolingLayer<"MaxPooling1D", 1, PoolingKind::kMax>;
template class PoolingLayer<"MaxPooling2D", 2, PoolingKind::kMax>;
template class PoolingLayer<"MaxPooling3D", 3, PoolingKind::kMax>;
template class PoolingLayer<"AveragePooling1D", 1, PoolingKind::kAverage>;
template class PoolingLayer<"AveragePooling2D", 2, PoolingKind::kAverage>;
template class PoolingLayer<"AveragePooling3D", 3, PoolingKind::kAverage>;

KEEL_REGISTER(Layer, MaxPooling1DLayer, .package = "keras")
KEEL_REGISTER(Layer, MaxPooling2DLayer, .package = "keras")
KEEL_REGISTER(Layer, MaxPooling3DLayer, .package = "keras")
KEEL_REGISTER(Layer, AveragePooling1DLayer, .package = "keras")
KEEL_REGISTER(Layer, AveragePooling2DLayer, .package = "keras")
KEEL_REGISTER(Layer, AveragePooling3DLayer, .package = "keras")

}  // namespace keel
