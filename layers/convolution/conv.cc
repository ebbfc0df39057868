#include <keel/layers/convolution/conv.h>

#include <keel/layers/convolution/internal/windows.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {

template <ClassName kName, int N>
ConvLayer<kName, N>::ConvLayer(Options options) : Base(kClassName, std::move(options)) {
  if (options_.filters <= 0 || options_.groups <= 0 || options_.filters % options_.groups != 0) {
    throw ValueError(caller(),
                     ": filters and groups must be positive, and groups must divide filters, ",
                     "received ", options_.filters, " and ", options_.groups);
  }
  check_window_options(window_options(options_, caller()), N == 1, caller());
  this->set_activity_regularizer(options_.activity_regularizer);
}

template <ClassName kName, int N>
void ConvLayer<kName, N>::build_weights(const TensorSpec& input) {
  const WindowOptions placement = window_options(options_, caller());
  const int64_t channels = channels_of(input.shape, placement, caller());
  if (channels % options_.groups != 0) {
    throw ValueError(caller(), ": groups must divide the channels, received ", options_.groups,
                     " and ", channels);
  }
  kernel_ = this->add_weight(
      {.name = "kernel",
       .shape = kernel_shape(placement, channels / options_.groups, options_.filters),
       .initializer = options_.kernel_initializer,
       .regularizer = options_.kernel_regularizer,
       .constraint = options_.kernel_constraint,
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
Tensor ConvLayer<kName, N>::call(const Tensor& input, const CallContext&) {
  const WindowOptions placement = window_options(options_, caller());
  check_channels(input.shape(), kernel_.shape()[-2] * options_.groups, placement, caller());
  if (input.is_symbolic()) {
    return Tensor::symbolic(
        {.shape = convolved_shape(input.shape(), options_.filters, placement, caller()),
         .dtype = this->dtype()});
  }
  const Tensor x = placement.layout.to_channels_last(as_dtype(input, this->dtype()));
  const Tensor bias = options_.use_bias ? bias_.read() : Tensor();
  const bool relu = options_.activation.is("relu");
  // ops::convolution computes relu itself; other functions are applied to its result.
  const Tensor y = placement.layout.from_channels_last(ops::convolution(
      x, kernel_, bias, windows_for(placement, x.shape(), caller()), options_.groups, relu));
  return relu ? y : options_.activation(y);
}

template class ConvLayer<"Conv1D", 1>;
template class ConvLayer<"Conv2D", 2>;
template class ConvLayer<"Conv3D", 3>;

KEEL_REGISTER(Layer, Conv1DLayer, .package = "keras")
KEEL_REGISTER(Layer, Conv2DLayer, .package = "keras")
KEEL_REGISTER(Layer, Conv3DLayer, .package = "keras")

}  // namespace keel
