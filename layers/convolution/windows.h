// Windows over the steps of sequences, and their placement by the options of convolutions.
#pragma once

#include <string>

#include <keel/framework/tensor.h>

namespace keel {

// The placement of windows: window i covers the steps i * stride + k * dilation - before for k <
// size.
struct Windows {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t before = 0;  // zero steps before the first step
  int64_t after = 0;   // zero steps after the last step

  // Number of steps from the first to the last step of a window.
  int64_t span() const { return (size - 1) * dilation + 1; }
  int64_t count(int64_t steps) const;  // number of windows; 0 if none fits
};

// Extracts windows: x [batch, steps, channels] -> [batch, windows, size, channels], with zeros
// beyond the ends. Differentiable; x must be floating point.
Tensor extract_windows(const Tensor& x, const Windows& windows);

// The options with which convolution layers place windows.
struct WindowOptions {
  int64_t kernel_size = 1;
  int64_t strides = 1;
  int64_t dilation_rate = 1;
  std::string padding;  // "valid", "same" (ceil(steps / strides) windows) or "causal"
  std::string data_format;
};

// Throws ValueError, naming `caller`, for sizes that are not positive, if strides and dilation_rate
// are both above 1, and for unknown names. Padding "causal" is accepted only if `causal` is true.
void check_window_options(const WindowOptions& options, bool causal, const std::string& caller);

// Returns the placement for sequences of `steps` steps. Throws ValueError, naming `caller`, if no
// window fits.
Windows windows_for(const WindowOptions& options, int64_t steps, const std::string& caller);

// Converts from the data format of the options to [batch, steps, channels], and back.
Tensor to_channels_last(const Tensor& x, const WindowOptions& options);
Tensor from_channels_last(const Tensor& x, const WindowOptions& options);

// Returns the number of channels of an input. Throws ValueError, naming `caller`, unless its rank
// is 3 and the number is known.
int64_t channels_of(const Shape& input, const WindowOptions& options, const std::string& caller);
// Throws ValueError, naming `caller`, unless the input has the number of channels that the layer
// was built for.
void check_channels(const Shape& input, int64_t built_for, const WindowOptions& options,
                    const std::string& caller);
// Returns the output shape for the given number of output channels. Dimensions of the input may be
// unknown.
Shape convolved_shape(const Shape& input, int64_t channels, const WindowOptions& options,
                      const std::string& caller);

// Convolves each channel with its own m filters: x [batch, steps, channels], kernel [size,
// channels, m] -> [batch, windows, channels m].
Tensor depthwise_convolution(const Tensor& x, const Tensor& kernel, const WindowOptions& options,
                             const std::string& caller);

}  // namespace keel
