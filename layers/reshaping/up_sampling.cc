#include <keel/layers/reshaping/up_sampling.h>

#include <absl/strings/str_cat.h>
#include <algorithm>

#include <keel/autodiff/spatial_ops.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/internal/spatial_layout.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

// Checks the options of a layer.
void check_up_sampling(const std::vector<int64_t>& factors, const std::string& data_format,
                       const std::string& caller) {
  spatial_layout(static_cast<int>(factors.size()), data_format, caller);
  for (const int64_t factor : factors) {
    if (factor <= 0) throw ValueError(caller, ": size must be positive, received ", factor);
  }
}

// Repeats each position of an axis.
Tensor repeated(const Tensor& x, int axis, int64_t factor) {
  if (factor == 1) return x;
  const Tensor wide = ops::expand_dims(x, axis + 1);
  return ops::reshape(ops::broadcast_to(wide, wide.shape().with(axis + 1, factor)),
                      x.shape().with(axis, x.dim(axis) * factor));
}

// Enlarges the spatial axes of x by whole factors.
Tensor enlarged(const Tensor& x, const std::vector<int64_t>& factors,
                const std::string& data_format, const std::string& interpolation,
                const std::string& caller) {
  const SpatialLayout layout =
      spatial_layout(static_cast<int>(factors.size()), data_format, caller);
  layout.check_rank(x.shape(), caller);
  Shape shape = x.shape();
  Tensor y = x;
  for (int i = 0; i < layout.axes; ++i) {
    const int axis = layout.spatial_axis(i);
    if (x.dim(axis) == kUnknown) continue;
    shape = shape.with(axis, x.dim(axis) * factors[i]);
    if (x.is_symbolic()) continue;
    y = interpolation == "nearest" ? repeated(y, axis, factors[i])
                                   : ops::resize_axis(y, axis, shape[axis], interpolation);
  }
  return x.is_symbolic() ? Tensor::symbolic({.shape = shape, .dtype = x.dtype()}) : y;
}

}  // namespace

UpSampling1DLayer::UpSampling1DLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  check_up_sampling({options_.size}, "channels_last", absl::StrCat(kClassName, " ", name()));
}

Tensor UpSampling1DLayer::call(const Tensor& x, const CallContext&) {
  return enlarged(x, {options_.size}, "channels_last", "nearest",
                  absl::StrCat(kClassName, " ", name()));
}

UpSampling2DLayer::UpSampling2DLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  constexpr std::string_view kInterpolations[] = {"nearest", "bilinear", "bicubic", "lanczos3",
                                                  "lanczos5"};
  const std::string caller = absl::StrCat(kClassName, " ", name());
  check_up_sampling(options_.size.values(), options_.data_format, caller);
  if (std::ranges::find(kInterpolations, options_.interpolation) == std::end(kInterpolations)) {
    throw ValueError(caller, ": interpolation must be nearest, bilinear, bicubic, lanczos3 or ",
                     "lanczos5, received '", options_.interpolation, "'");
  }
}

Tensor UpSampling2DLayer::call(const Tensor& x, const CallContext&) {
  const bool repeats = options_.interpolation == "nearest";
  return enlarged(repeats ? x : as_dtype(x, dtype()), options_.size.values(), options_.data_format,
                  options_.interpolation, absl::StrCat(kClassName, " ", name()));
}

UpSampling3DLayer::UpSampling3DLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  check_up_sampling(options_.size.values(), options_.data_format,
                    absl::StrCat(kClassName, " ", name()));
}

Tensor UpSampling3DLayer::call(const Tensor& x, const CallContext&) {
  return enlarged(x, options_.size.values(), options_.data_format, "nearest",
                  absl::StrCat(kClassName, " ", name()));
}

KEEL_REGISTER(Layer, UpSampling1DLayer, .package = "keras")
KEEL_REGISTER(Layer, UpSampling2DLayer, .package = "keras")
KEEL_REGISTER(Layer, UpSampling3DLayer, .package = "keras")

}  // namespace keel
