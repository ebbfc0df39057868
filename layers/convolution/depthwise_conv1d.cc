#include <keel/layers/convolution/depthwise_conv1d.h>

#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {

DepthwiseConv1DLayer::DepthwiseConv1DLayer(Options options)
    : TensorLayer(kClassName, options),
      options_(std::move(options)),
      windows_{.kernel_size = options_.kernel_size,
               .strides = options_.strides,
               .dilation_rate = options_.dilation_rate,
               .padding = options_.padding,
               .data_format = options_.data_format} {
  if (options_.depth_multiplier <= 0) {
    throw ValueError(caller(), ": depth_multiplier must be positive, received ",
                     options_.depth_multiplier);
  }
  check_window_options(windows_, false, caller());
  set_activity_regularizer(options_.activity_regularizer);
}

void DepthwiseConv1DLayer::build_weights(const TensorSpec& input) {
  const int64_t channels = channels_of(input.shape, windows_, caller());
  kernel_ = add_weight({.name = "kernel",
                        .shape = {options_.kernel_size, channels, options_.depth_multiplier},
                        .initializer = options_.depthwise_initializer,
                        .regularizer = options_.depthwise_regularizer,
                        .constraint = options_.depthwise_constraint,
                        .dtype = dtype()});
  if (options_.use_bias) {
    bias_ = add_weight({.name = "bias",
                        .shape = {channels * options_.depth_multiplier},
                        .initializer = options_.bias_initializer,
                        .regularizer = options_.bias_regularizer,
                        .constraint = options_.bias_constraint,
                        .dtype = dtype()});
  }
}

Tensor DepthwiseConv1DLayer::call(const Tensor& input, const CallContext&) {
  check_channels(input.shape(), kernel_.shape()[1], windows_, caller());
  const int64_t channels = kernel_.shape()[1] * options_.depth_multiplier;
  if (input.is_symbolic()) {
    return Tensor::symbolic(
        {.shape = convolved_shape(input.shape(), channels, windows_, caller()), .dtype = dtype()});
  }
  Tensor y = depthwise_convolution(to_channels_last(as_dtype(input, dtype()), windows_), kernel_,
                                   windows_, caller());
  if (options_.use_bias) y = y + bias_;
  return options_.activation(from_channels_last(y, windows_));
}

KEEL_REGISTER(Layer, DepthwiseConv1DLayer)

}  // namespace keel
