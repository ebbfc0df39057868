// Windows over the steps of sequences, and how the options of convolutions place them.
#pragma once

#include <string>

#include <keel/framework/tensor.h>

namespace keel {

// Window i covers the steps i * stride + k * dilation - before, k < size.
struct Windows {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t before = 0;  // steps of zeros before the first
  int64_t after = 0;   // and after the last

  int64_t span() const { return (size - 1) * dilation + 1; }  // steps from its first to its last
  int64_t count(int64_t steps) const;                         // 0 if none fits
};

// x [batch, steps, channels] -> [batch, windows, size, channels], zeros beyond the ends.
// Differentiable; floating.
Tensor extract_windows(const Tensor& x, const Windows& windows);

// The options by which layers place windows.
struct WindowOptions {
  int64_t kernel_size = 1;
  int64_t strides = 1;
  int64_t dilation_rate = 1;
  std::string padding;  // "valid", "same" (ceil(steps / strides) windows) or "causal"
  std::string data_format;
};

// ValueError, naming `caller`, for sizes that are not positive, strides and dilation_rate both
// above 1, and other names. Padding "causal" only if allowed.
void check_window_options(const WindowOptions& options, bool causal, const std::string& caller);

// Of sequences of so many steps. ValueError, naming `caller`, if no window fits.
Windows windows_for(const WindowOptions& options, int64_t steps, const std::string& caller);

// [batch, steps, channels] whichever the data format, and back.
Tensor to_channels_last(const Tensor& x, const WindowOptions& options);
Tensor from_channels_last(const Tensor& x, const WindowOptions& options);

// The channels of an input. ValueError, naming `caller`, unless its rank is 3 and they are known.
int64_t channels_of(const Shape& input, const WindowOptions& options, const std::string& caller);
// ValueError, naming `caller`, unless the input has the channels that the layer was built for.
void check_channels(const Shape& input, int64_t built_for, const WindowOptions& options,
                    const std::string& caller);
// The shape of an output of so many channels, for inputs whose dimensions may be unknown.
Shape convolved_shape(const Shape& input, int64_t channels, const WindowOptions& options,
                      const std::string& caller);

// x [batch, steps, channels], kernel [size, channels, m] -> [batch, windows, channels m]: each
// channel by the m filters of its own.
Tensor depthwise_convolution(const Tensor& x, const Tensor& kernel, const WindowOptions& options,
                             const std::string& caller);

}  // namespace keel
