// The placement of the windows of convolution layers by their options.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/autodiff/spatial_ops.h>
#include <keel/layers/internal/spatial_layout.h>

namespace keel {

// The options with which convolution layers place windows, with one number for each spatial axis.
struct WindowOptions {
  std::vector<int64_t> kernel_size, strides, dilation_rate;
  std::string padding;  // "valid", "same" (ceil(size / stride) windows) or "causal"
  SpatialLayout layout = {};

  int axes() const { return layout.axes; }
};

// Returns the placement that a convolution layer's options request. Throws ValueError, naming
// `caller`, for an unknown data format.
WindowOptions window_options(const auto& options, const std::string& caller) {
  const std::vector<int64_t> kernel_size = options.kernel_size.values();
  const int axes = static_cast<int>(kernel_size.size());
  return {.kernel_size = kernel_size,
          .strides = options.strides.values(),
          .dilation_rate = options.dilation_rate.values(),
          .padding = options.padding,
          .layout = spatial_layout(axes, options.data_format, caller)};
}

// Throws ValueError, naming `caller`, for sizes that are not positive, if strides and dilation_rate
// are both above 1, and for an unknown padding. Padding "causal" is accepted only if `causal` is
// true, and with channels last.
void check_window_options(const WindowOptions& options, bool causal, const std::string& caller);

// Returns the number of channels of an input. Throws ValueError, naming `caller`, unless its rank
// fits and the number is known.
int64_t channels_of(const Shape& input, const WindowOptions& options, const std::string& caller);
// Throws ValueError, naming `caller`, unless the input has the number of channels that the layer
// was built for.
void check_channels(const Shape& input, int64_t built_for, const WindowOptions& options,
                    const std::string& caller);
// Returns [kernel_size ..., inputs, outputs].
Shape kernel_shape(const WindowOptions& options, int64_t inputs, int64_t outputs);

// Returns the windows over an input with channels last. Throws ValueError, naming `caller`, if no
// window fits.
ops::SpatialWindows windows_for(const WindowOptions& options, const Shape& input,
                                const std::string& caller);
// Returns the output shape for the given number of output channels. Dimensions of the input may be
// unknown.
Shape convolved_shape(const Shape& input, int64_t channels, const WindowOptions& options,
                      const std::string& caller);

// The outputs of a transposed convolution along one axis, and the windows over these outputs.
struct TransposedAxis {
  int64_t outputs = 0;
  ops::SpatialWindow window = {};
};

// Returns the placement along one axis of an input with `size` positions.
TransposedAxis transposed_axis(const WindowOptions& options, std::optional<int64_t> output_padding,
                               int axis, int64_t size);

}  // namespace keel
