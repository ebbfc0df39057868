#include <keel/layers/convolution/conv1d.h>

#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

// Multiplies [batch, windows, size, channels] by a kernel [size, channels, filters]; returns
// [batch, windows, filters].
Tensor filtered(const Tensor& windows, const Tensor& kernel) {
  const int64_t depth = kernel.dim(0) * kernel.dim(1);
  return ops::matmul(ops::reshape(windows, {windows.dim(0), windows.dim(1), depth}),
                     ops::reshape(kernel, {depth, kernel.dim(2)}));
}

}  // namespace

Conv1DLayer::Conv1DLayer(Options options)
    : TensorLayer(kClassName, options),
      options_(std::move(options)),
      windows_{.kernel_size = options_.kernel_size,
               .strides = options_.strides,
               .dilation_rate = options_.dilation_rate,
               .padding = options_.padding,
               .data_format = options_.data_format} {
  if (options_.filters <= 0 || options_.groups <= 0 || options_.filters % options_.groups != 0) {
    throw ValueError(caller(),
                     ": filters and groups must be positive, and groups must divide filters, ",
                     "received ", options_.filters, " and ", options_.groups);
  }
  check_window_options(windows_, true, caller());
  set_activity_regularizer(options_.activity_regularizer);
}

void Conv1DLayer::build_weights(const TensorSpec& input) {
  const int64_t channels = channels_of(input.shape, windows_, caller());
  if (channels % options_.groups != 0) {
    throw ValueError(caller(), ": groups must divide the channels, received ", options_.groups,
                     " and ", channels);
  }
  kernel_ =
      add_weight({.name = "kernel",
                  .shape = {options_.kernel_size, channels / options_.groups, options_.filters},
                  .initializer = options_.kernel_initializer,
                  .regularizer = options_.kernel_regularizer,
                  .constraint = options_.kernel_constraint,
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

Tensor Conv1DLayer::call(const Tensor& input, const CallContext&) {
  check_channels(input.shape(), kernel_.shape()[1] * options_.groups, windows_, caller());
  if (input.is_symbolic()) {
    return Tensor::symbolic(
        {.shape = convolved_shape(input.shape(), options_.filters, windows_, caller()),
         .dtype = dtype()});
  }
  const Tensor x = to_channels_last(as_dtype(input, dtype()), windows_);
  const Tensor windows = extract_windows(x, windows_for(windows_, x.dim(1), caller()));
  Tensor y;
  if (options_.groups == 1) {
    y = filtered(windows, kernel_);
  } else {
    const std::vector<Tensor> shares = ops::split(windows, options_.groups);
    const std::vector<Tensor> kernels = ops::split(kernel_, options_.groups);
    std::vector<Tensor> parts;
    for (size_t g = 0; g < shares.size(); ++g) parts.push_back(filtered(shares[g], kernels[g]));
    y = ops::concat(parts);
  }
  if (options_.use_bias) y = y + bias_;
  return options_.activation(from_channels_last(y, windows_));
}

KEEL_REGISTER(Layer, Conv1DLayer)

}  // namespace keel
