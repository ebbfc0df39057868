#include <keel/layers/convolution/separable_conv1d.h>

#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {

SeparableConv1DLayer::SeparableConv1DLayer(Options options)
    : TensorLayer(kClassName, options),
      options_(std::move(options)),
      windows_{.kernel_size = options_.kernel_size,
               .strides = options_.strides,
               .dilation_rate = options_.dilation_rate,
               .padding = options_.padding,
               .data_format = options_.data_format} {
  if (options_.filters <= 0 || options_.depth_multiplier <= 0) {
    throw ValueError(caller(), ": filters and depth_multiplier must be positive, received ",
                     options_.filters, " and ", options_.depth_multiplier);
  }
  check_window_options(windows_, false, caller());
  set_activity_regularizer(options_.activity_regularizer);
}

void SeparableConv1DLayer::build_weights(const TensorSpec& input) {
  const int64_t channels = channels_of(input.shape, windows_, caller());
  depthwise_kernel_ =
      add_weight({.name = "depthwise_kernel",
                  .shape = {options_.kernel_size, channels, options_.depth_multiplier},
                  .initializer = options_.depthwise_initializer,
                  .regularizer = options_.depthwise_regularizer,
                  .constraint = options_.depthwise_constraint,
                  .dtype = dtype()});
  pointwise_kernel_ =
      add_weight({.name = "pointwise_kernel",
                  .shape = {1, channels * options_.depth_multiplier, options_.filters},
                  .initializer = options_.pointwise_initializer,
                  .regularizer = options_.pointwise_regularizer,
                  .constraint = options_.pointwise_constraint,
                  .dtype = dtype()});
  if (options_.use_bias) {
    bias_ = add_weight({.name = "bias",
                        .shape = {options_.filters},
                        .initializer = options_.bias_initializer,
                        .regularizer = options_.bias_regularizer,
                        .constraint = options_.bias_constraint,
                        .dtype = dtype()});
  }
}

Tensor SeparableConv1DLayer::call(const Tensor& input, const CallContext&) {
  check_channels(input.shape(), depthwise_kernel_.shape()[1], windows_, caller());
  if (input.is_symbolic()) {
    return Tensor::symbolic(
        {.shape = convolved_shape(input.shape(), options_.filters, windows_, caller()),
         .dtype = dtype()});
  }
  const Tensor x = to_channels_last(as_dtype(input, dtype()), windows_);
  Tensor y = ops::matmul(depthwise_convolution(x, depthwise_kernel_, windows_, caller()),
                         ops::squeeze(pointwise_kernel_, 0));
  if (options_.use_bias) y = y + bias_;
  return options_.activation(from_channels_last(y, windows_));
}

KEEL_REGISTER(Layer, SeparableConv1DLayer)

}  // namespace keel
