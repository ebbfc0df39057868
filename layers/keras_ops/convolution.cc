#include <keel/layers/keras_ops/convolution.h>

#include <keel/layers/convolution/internal/windows.h>
#include <keel/layers/pooling/internal/pool.h>

namespace keel::keras_ops {
namespace {

// The placement of the windows of a kernel.
WindowOptions placement_of(const char* name, const Tensor& inputs, const Tensor& kernel,
                           const SpatialSizes& strides, const std::string& padding,
                           const std::string& data_format, const SpatialSizes& dilation_rate) {
  const int axes = inputs.rank() - 2;
  if (axes < 1 || axes > 3 || kernel.rank() != inputs.rank()) {
    throw ValueError(name, ": inputs and kernel must have the same rank of 3 to 5, received ",
                     inputs.shape(), " and ", kernel.shape());
  }
  const auto sizes = kernel.shape().dims().first(axes);
  WindowOptions out = {.kernel_size = {sizes.begin(), sizes.end()},
                       .strides = strides.of(axes),
                       .dilation_rate = dilation_rate.of(axes),
                       .padding = padding,
                       .layout = spatial_layout(axes, data_format, name)};
  check_window_options(out, false, name);
  return out;
}

// Pools with the ranges of each axis, a function of the axis and its length.
template <class Ranges>
Tensor pooled(const char* name, PoolingKind kind, const Tensor& inputs,
              const std::string& data_format, const Ranges& ranges) {
  const int axes = inputs.rank() - 2;
  if (axes < 1 || axes > 3) {
    throw ValueError(name, ": inputs must have a rank of 3 to 5, received ", inputs.shape());
  }
  return pool(inputs, spatial_layout(axes, data_format, name), kind, ranges);
}

Tensor pool_windows(const char* name, PoolingKind kind, const Tensor& inputs,
                    const SpatialSizes& pool_size, const std::optional<SpatialSizes>& strides,
                    const std::string& padding, const std::string& data_format) {
  if (padding != "valid" && padding != "same") {
    throw ValueError(name, ": padding must be valid or same, received '", padding, "'");
  }
  const int axes = inputs.rank() - 2;
  const std::vector<int64_t> size = pool_size.of(axes);
  const std::vector<int64_t> step = strides.value_or(pool_size).of(axes);
  return pooled(name, kind, inputs, data_format, [&](int axis, int64_t length) {
    if (size[axis] < 1 || step[axis] < 1) {
      throw ValueError(name, ": pool_size and strides must be positive");
    }
    const auto out = window_ranges(length, size[axis], step[axis], padding == "same");
    if (out.empty()) {
      throw ValueError(name, ": a window of ", size[axis], " does not fit into ", inputs.shape(),
                       "; use a smaller pool_size or padding 'same'");
    }
    return out;
  });
}

Tensor pool_adaptively(const char* name, PoolingKind kind, const Tensor& inputs,
                       const SpatialSizes& output_size, const std::string& data_format) {
  const std::vector<int64_t> count = output_size.of(inputs.rank() - 2);
  return pooled(name, kind, inputs, data_format, [&](int axis, int64_t length) {
    if (count[axis] < 1 || length < 1) {
      throw ValueError(name, ": output_size and the input must not be empty");
    }
    return adaptive_ranges(length, count[axis]);
  });
}

}  // namespace

std::vector<int64_t> SpatialSizes::of(int axes) const {
  if (values_.size() == 1) return std::vector<int64_t>(std::max(axes, 0), values_[0]);
  if (static_cast<int>(values_.size()) != axes) {
    throw ValueError("keras_ops: requires one size, or one for each of ", axes,
                     " spatial axes, received ", values_.size());
  }
  return values_;
}

Tensor conv(const Tensor& inputs, const Tensor& kernel, const SpatialSizes& strides,
            const std::string& padding, const std::string& data_format,
            const SpatialSizes& dilation_rate) {
  const WindowOptions placement =
      placement_of("conv", inputs, kernel, strides, padding, data_format, dilation_rate);
  const Tensor x = placement.layout.to_channels_last(inputs);
  const int64_t channels = x.dim(-1), of_group = kernel.dim(-2);
  if (of_group == 0 || channels % of_group != 0) {
    throw ValueError("conv: the channels of the inputs, ", channels,
                     ", must be a multiple of those of the kernel of shape ", kernel.shape());
  }
  return placement.layout.from_channels_last(ops::convolution(
      x, kernel, {}, windows_for(placement, x.shape(), "conv"), channels / of_group));
}

Tensor depthwise_conv(const Tensor& inputs, const Tensor& kernel, const SpatialSizes& strides,
                      const std::string& padding, const std::string& data_format,
                      const SpatialSizes& dilation_rate) {
  const WindowOptions placement =
      placement_of("depthwise_conv", inputs, kernel, strides, padding, data_format, dilation_rate);
  const Tensor x = placement.layout.to_channels_last(inputs);
  return placement.layout.from_channels_last(
      ops::depthwise_convolution(x, kernel, windows_for(placement, x.shape(), "depthwise_conv")));
}

Tensor separable_conv(const Tensor& inputs, const Tensor& depthwise_kernel,
                      const Tensor& pointwise_kernel, const SpatialSizes& strides,
                      const std::string& padding, const std::string& data_format,
                      const SpatialSizes& dilation_rate) {
  const Tensor filtered =
      depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate);
  return conv(filtered, pointwise_kernel, 1, "valid", data_format, 1);
}

Tensor conv_transpose(const Tensor& inputs, const Tensor& kernel, const SpatialSizes& strides,
                      const std::string& padding, const std::optional<SpatialSizes>& output_padding,
                      const std::string& data_format, const SpatialSizes& dilation_rate) {
  const WindowOptions placement =
      placement_of("conv_transpose", inputs, kernel, strides, padding, data_format, dilation_rate);
  const Tensor x = placement.layout.to_channels_last(inputs);
  ops::SpatialWindows windows;
  std::vector<int64_t> sizes;
  for (int i = 0; i < placement.axes(); ++i) {
    std::optional<int64_t> extra;
    if (output_padding) extra = output_padding->of(placement.axes())[i];
    const TransposedAxis axis = transposed_axis(placement, extra, i, x.dim(i + 1));
    if (axis.outputs <= 0) {
      throw ValueError("conv_transpose: an input of shape ", inputs.shape(),
                       " has no outputs; pass larger inputs or a larger output_padding");
    }
    windows.push_back(axis.window);
    sizes.push_back(axis.outputs);
  }
  return placement.layout.from_channels_last(
      ops::transposed_convolution(x, kernel, windows, sizes));
}

Tensor max_pool(const Tensor& inputs, const SpatialSizes& pool_size,
                const std::optional<SpatialSizes>& strides, const std::string& padding,
                const std::string& data_format) {
  return pool_windows("max_pool", PoolingKind::kMax, inputs, pool_size, strides, padding,
                      data_format);
}
Tensor average_pool(const Tensor& inputs, const SpatialSizes& pool_size,
                    const std::optional<SpatialSizes>& strides, const std::string& padding,
                    const std::string& data_format) {
  return pool_windows("average_pool", PoolingKind::kAverage, inputs, pool_size, strides, padding,
                      data_format);
}
Tensor adaptive_max_pool(const Tensor& inputs, const SpatialSizes& output_size,
                         const std::string& data_format) {
  return pool_adaptively("adaptive_max_pool", PoolingKind::kMax, inputs, output_size, data_format);
}
Tensor adaptive_average_pool(const Tensor& inputs, const SpatialSizes& output_size,
                             const std::string& data_format) {
  return pool_adaptively("adaptive_average_pool", PoolingKind::kAverage, inputs, output_size,
                         data_format);
}

}  // namespace keel::keras_ops
