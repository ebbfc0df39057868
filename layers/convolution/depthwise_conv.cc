#include <keel/layers/convolution/depthwise_conv.h>

#include <keel/layers/convolution/internal/windows.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {

template <ClassName kName, int N>
DepthwiseConvLayer<kName, N>::DepthwiseConvLayer(Options options)
    : Base(kClassName, std::move(options)) {
  if (options_.depth_multiplier <= 0) {
    throw ValueError(caller(), ": depth_multiplier must be positive, received ",
                     options_.depth_multiplier);
  }
  check_window_options(window_options(options_, caller()), false, caller());
  this->set_activity_regularizer(options_.activity_regularizer);
}

template <ClassName kName, int N>
void DepthwiseConvLayer<kName, N>::build_weights(const TensorSpec& input) {
  const WindowOptions placement = window_options(options_, caller());
  const int64_t channels = channels_of(input.shape, placement, caller());
  kernel_ = this->add_weight({.name = "kernel",
                              .shape = kernel_shape(placement, channels, options_.depth_multiplier),
                              .initializer = options_.depthwise_initializer,
                              .regularizer = options_.depthwise_regularizer,
                              .constraint = options_.depthwise_constraint,
                              .dtype = this->dtype()});
  if (options_.use_bias) {
    bias_ = this->add_weight({.name = "bias",
                              .shape = {channels * options_.depth_multiplier},
                              .initializer = options_.bias_initializer,
                              .regularizer = options_.bias_regularizer,
                              .constraint = options_.bias_constraint,
                              .dtype = this->dtype()});
  }
}

template <ClassName kName, int N>
Tensor DepthwiseConvLayer<kName, N>::call(const Tensor& input, const CallContext&) {
  const WindowOptions placement = window_options(options_, caller());
  check_channels(input.shape(), kernel_.shape()[-2], placement, caller());
  if (input.is_symbolic()) {
    const int64_t channels = kernel_.shape()[-2] * options_.depth_multiplier;
    return Tensor::symbolic({.shape = convolved_shape(input.shape(), channels, placement, caller()),
                             .dtype = this->dtype()});
  }
  const Tensor x = placement.layout.to_channels_last(as_dtype(input, this->dtype()));
  Tensor y = ops::depthwise_convolution(x, kernel_, windows_for(placement, x.shape(), caller()));
  if (options_.use_bias) y = y + bias_;
  return options_.activation(placement.layout.from_channels_last(y));
}

template class DepthwiseConvLayer<"DepthwiseConv1D", 1>;
template class DepthwiseConvLayer<"DepthwiseConv2D", 2>;

KEEL_REGISTER(Layer, DepthwiseConv1DLayer, .package = "keras", .ignored_keys = "groups=1")
KEEL_REGISTER(Layer, DepthwiseConv2DLayer, .package = "keras", .ignored_keys = "groups=1")

}  // namespace keel
