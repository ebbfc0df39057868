#include <keel/layers/convolution/conv_transpose.h>

#include <algorithm>

#include <keel/layers/convolution/internal/windows.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {
template <ClassName kName, int N>
ConvTransposeLayer<kName, N>::ConvTransposeLayer(Options options)
    : Base(kClassName, std::move(options)) {
  if (options_.filters <= 0) {
    throw ValueError(caller(), ": filters must be positive, received ", options_.filters);
  }
  check_window_options(window_options(options_, caller()), false, caller());
  for (int i = 0; options_.output_padding && i < N; ++i) {
    const int64_t padding = (*options_.output_padding)[i];
    if (padding >= 0) continue;
    throw ValueError(caller(), ": output_padding must not be negative, received ", padding);
  }
  this->set_activity_regularizer(options_.activity_regularizer);
}

template <ClassName kName, int N>
void ConvTransposeLayer<kName, N>::build_weights(const TensorSpec& input) {
  const WindowOptions placement = window_options(options_, caller());
  const int64_t channels = channels_of(input.shape, placement, caller());
  kernel_ = this->add_weight({.name = "kernel",
                              .shape = kernel_shape(placement, options_.filters, channels),
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
Tensor ConvTransposeLayer<kName, N>::call(const Tensor& input, const CallContext&) {
  const WindowOptions placement = window_options(options_, caller());
  const SpatialLayout& layout = placement.layout;
  check_channels(input.shape(), kernel_.shape()[-1], placement, caller());
  Shape shape = input.shape().with(layout.channel_axis(), options_.filters);
  ops::SpatialWindows windows;
  std::vector<int64_t> sizes;
  for (int i = 0; i < N; ++i) {
    const int64_t size = input.dim(layout.spatial_axis(i));
    if (size == kUnknown) continue;
    std::optional<int64_t> padding;
    if (options_.output_padding) padding = (*options_.output_padding)[i];
    const TransposedAxis axis = transposed_axis(placement, padding, i, size);
    if (axis.outputs <= 0) {
      throw ValueError(caller(), ": an input of shape ", input.shape(),
                       " has no outputs; pass larger inputs or a larger output_padding");
    }
    shape = shape.with(layout.spatial_axis(i), axis.outputs);
    windows.push_back(axis.window);
    sizes.push_back(axis.outputs);
  }
  if (input.is_symbolic()) return Tensor::symbolic({.shape = shape, .dtype = this->dtype()});
  const Tensor x = layout.to_channels_last(as_dtype(input, this->dtype()));
  Tensor y = ops::transposed_convolution(x, kernel_, windows, sizes);
  if (options_.use_bias) y = y + bias_;
  return options_.activation(layout.from_channels_last(y));
}

template class ConvTransposeLayer<"Conv1DTranspose", 1>;
template class ConvTransposeLayer<"Conv2DTranspose", 2>;
template class ConvTransposeLayer<"Conv3DTranspose", 3>;

KEEL_REGISTER(Layer, Conv1DTransposeLayer, .package = "keras", .ignored_keys = "groups=1")
KEEL_REGISTER(Layer, Conv2DTransposeLayer, .package = "keras", .ignored_keys = "groups=1")
KEEL_REGISTER(Layer, Conv3DTransposeLayer, .package = "keras", .ignored_keys = "groups=1")

}  // namespace keel
