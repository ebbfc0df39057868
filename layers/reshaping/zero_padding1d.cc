#include <keel/layers/reshaping/zero_padding1d.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/internal/data_format.h>
#include <keel/layers/registry.h>

namespace keel {

ZeroPadding1DLayer::ZeroPadding1DLayer(Options options)
    : TensorLayer(kClassName, options),
      options_(std::move(options)),
      steps_axis_(is_channels_last(options_.data_format, "ZeroPadding1D " + name()) ? 1 : 2) {
  const auto [before, after] = options_.padding;
  if (before < 0 || after < 0) {
    throw ValueError("ZeroPadding1D ", name(), ": padding must not be negative, received ", before,
                     " and ", after);
  }
}

Tensor ZeroPadding1DLayer::call(const Tensor& x, const CallContext&) {
  if (x.rank() != 3) {
    throw ValueError("ZeroPadding1D ", name(), ": input must have rank 3, received shape ",
                     x.shape());
  }
  return ops::pad(x, steps_axis_, options_.padding.before, options_.padding.after);
}

KEEL_REGISTER(Layer, ZeroPadding1DLayer)

}  // namespace keel
