#include <keel/layers/pooling/global_max_pooling1d.h>

#include <keel/layers/internal/cast.h>
#include <keel/layers/internal/data_format.h>
#include <keel/layers/registry.h>

namespace keel {

GlobalMaxPooling1DLayer::GlobalMaxPooling1DLayer(Options options)
    : TensorLayer(kClassName, options),
      options_(std::move(options)),
      steps_axis_(is_channels_last(options_.data_format, "GlobalMaxPooling1D " + name()) ? 1 : 2) {}

Tensor GlobalMaxPooling1DLayer::call(const Tensor& input, const CallContext&) {
  const Tensor x = as_dtype(input, dtype());
  if (x.rank() != 3) {
    throw ValueError("GlobalMaxPooling1D ", name(), ": input must have rank 3, received shape ",
                     x.shape());
  }
  return ops::max(x, {steps_axis_}, options_.keepdims);
}

KEEL_REGISTER(Layer, GlobalMaxPooling1DLayer)

}  // namespace keel
