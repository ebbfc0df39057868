#include <keel/layers/convolution/depthwise_conv.h>
#include <keel/layers/convolution/internal/windows.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {

template <ClassName kName, int N>
SeparableConvLayer<kName, N>::SeparableConvLayer(Options options)
    : Base(kClassName, std::move(options)) {
  if (options_.filters <= 0 || options_.depth_multiplier <= 0) {
    throw ValueError(caller(), ": filters and depth_multiplier must be positive, received ",
                     options_.filters, " and ", options_.depth_multiplier);
  }
  check_window_options(window_options(options_, caller()), false, caller());
  this->set_activity_regularizer(options_.activity_regularizer);
}

template <ClassName kName, int N>
void SeparableConvLayer<kName, N>::build_weights(const TensorSpec& input) {
  WindowOptions placement = window_options(options_, caller());
  const int64_t channels = channels_of(input.shape, placement, caller());
  depthwise_kernel_ =
      this->add_weight({.name = "depthwise_kernel",
                        .shape = kernel_shape(placement, channels, options_.depth_multiplier),
                        .initializer = options_.depthwise_initializer,
                        .regularizer = options_.depthwise_regularizer,
                        .constraint = options_.depthwise_constraint,
                        .dtype = this->dtype()});
  placement.kernel_size.assign(N, 1);
  pointwise_kernel_ = this->add_weight(
      {.name = "pointwise_kernel",
       .shape = kernel_shape(placement, channels * options_.depth_multiplier, options_.filters),
       .initializer = options_.pointwise_initializer,
       .regularizer = options_.pointwise_regularizer,
       .constraint = options_.pointwise_constraint,
       .dtype = this->dtype()});
  if (options_.use_bias) {
    bias_ = this->add_weight({.name = "bias",
                              .shape = {options_.filters},
                              .initializer = options_.bias_initializer,
                              .regularizer = options_.bias_regularizer,
                              .constraint = options_.bias_constraint,
                              .dtype = this->dtype()});
  }
}

template <ClassName kName, int N>
Tensor SeparableConvLayer<kName, N>::call(const Tensor& input, const CallContext&) {
  const WindowOptions placement = window_options(options_, caller());
  check_channels(input.shape(), depthwise_kernel_.shape()[-2], placement, caller());
  if (input.is_symbolic()) {
    return Tensor::symbolic(
        {.shape = convolved_shape(input.shape(), options_.filters, placement, caller()),
         .dtype = this->dtype()});
  }
  const Tensor x = placement.layout.to_channels_last(as_dtype(input, this->dtype()));
  const Tensor filtered =
      ops::depthwise_convolution(x, depthwise_kernel_, windows_for(placement, x.shape(), caller()));
  const Tensor bias = options_.use_bias ? bias_.read() : Tensor();
  const bool relu = options_.activation.is("relu");
  const Tensor y = placement.layout.from_channels_last(
      ops::convolution(filtered, pointwise_kernel_, bias, ops::SpatialWindows(N), 1, relu));
  return relu ? y : options_.activation(y);
}

template class SeparableConvLayer<"SeparableConv1D", 1>;
template class SeparableConvLayer<"SeparableConv2D", 2>;

KEEL_REGISTER(Layer, SeparableConv1DLayer, .package = "keras",
              .ignored_keys =
                  "groups=1, kernel_initializer=*, kernel_regularizer=null, kernel_constraint=null")
KEEL_REGISTER(Layer, SeparableConv2DLayer, .package = "keras",
              .ignored_keys =
                  "groups=1, kernel_initializer=*, kernel_regularizer=null, kernel_constraint=null")

}  // namespace keel
