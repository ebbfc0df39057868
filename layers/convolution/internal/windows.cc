#include <keel/layers/convolution/internal/windows.h>

#include <algorithm>

namespace keel {
namespace {

// Returns the windows along one axis with `size` positions.
ops::SpatialWindow window_along(const WindowOptions& options, int axis, int64_t size,
                                const std::string& caller) {
  ops::SpatialWindow out = {.size = options.kernel_size[axis],
                            .stride = options.strides[axis],
                            .dilation = options.dilation_rate[axis]};
  if (options.padding == "causal") {
    out.before = out.span() - 1;
  } else if (options.padding == "same") {
    const int64_t count = (size + out.stride - 1) / out.stride;
    const int64_t missing = (count - 1) * out.stride + out.span() - size;
    out.before = std::max<int64_t>(missing, 0) / 2;
    out.after = std::max<int64_t>(missing, 0) - out.before;
  }
  if (out.count(size) == 0) {
    throw ValueError(caller, ": a window of ", out.span(), " steps does not fit into an input of ",
                     size, " steps; pass larger inputs or pad them");
  }
  return out;
}

}  // namespace

void check_window_options(const WindowOptions& options, bool causal, const std::string& caller) {
  const auto check_positive = [&](const char* option, const std::vector<int64_t>& values) {
    for (const int64_t value : values) {
      if (value <= 0) throw ValueError(caller, ": ", option, " must be positive, received ", value);
    }
  };
  check_positive("kernel_size", options.kernel_size);
  check_positive("strides", options.strides);
  check_positive("dilation_rate", options.dilation_rate);
  const int64_t stride = std::ranges::max(options.strides);
  const int64_t dilation = std::ranges::max(options.dilation_rate);
  if (stride > 1 && dilation > 1) {
    throw ValueError(caller, ": strides and dilation_rate cannot both be above 1, received ",
                     stride, " and ", dilation, "; set one of them to 1");
  }
  const bool known = options.padding == "valid" || options.padding == "same" ||
                     (causal && options.padding == "causal");
  if (!known) {
    throw ValueError(caller, ": padding must be valid", causal ? ", same or causal" : " or same",
                     ", received '", options.padding, "'");
  }
  if (options.padding == "causal" && !options.layout.channels_last) {
    throw ValueError(caller, ": padding 'causal' requires data_format channels_last");
  }
}

int64_t channels_of(const Shape& input, const WindowOptions& options, const std::string& caller) {
  options.layout.check_rank(input, caller);
  const int axis = options.layout.channel_axis();
  if (input[axis] != kUnknown) return input[axis];
  throw ValueError(caller, ": the input must have a known number of channels on axis ", axis,
                   ", received ", input);
}

void check_channels(const Shape& input, int64_t built_for, const WindowOptions& options,
                    const std::string& caller) {
  if (channels_of(input, options, caller) == built_for) return;
  throw ValueError(caller, ": the layer was built for ", built_for, " channels, received ", input,
                   "; pass inputs with as many channels");
}

Shape kernel_shape(const WindowOptions& options, int64_t inputs, int64_t outputs) {
  return Shape(options.kernel_size) + Shape{inputs, outputs};
}

ops::SpatialWindows windows_for(const WindowOptions& options, const Shape& input,
                                const std::string& caller) {
  ops::SpatialWindows out;
  for (int i = 0; i < options.axes(); ++i) {
    out.push_back(window_along(options, i, input[i + 1], caller));
  }
  return out;
}

Shape convolved_shape(const Shape& input, int64_t channels, const WindowOptions& options,
                      const std::string& caller) {
  Shape out = input.with(options.layout.channel_axis(), channels);
  for (int i = 0; i < options.axes(); ++i) {
    const int axis = options.layout.spatial_axis(i);
    if (input[axis] == kUnknown) continue;
    out = out.with(axis, window_along(options, i, input[axis], caller).count(input[axis]));
  }
  return out;
}

// Keras defines the padding on the input with strides - 1 zeros between its steps, over which a
// convolution with the flipped kernel moves: `left` zeros before and `right` zeros after it.
TransposedAxis transposed_axis(const WindowOptions& options, std::optional<int64_t> output_padding,
                               int axis, int64_t size) {
  ops::SpatialWindow window = {.size = options.kernel_size[axis],
                               .stride = options.strides[axis],
                               .dilation = options.dilation_rate[axis]};
  const int64_t span = window.span(), stride = window.stride;
  int64_t left = span - 1;
  int64_t right = span - 1 + output_padding.value_or(std::max(span, stride) - span);
  if (options.padding == "same") {
    const int64_t both = output_padding ? span + span % 2 - 2 + *output_padding : stride + span - 2;
    left = std::min(both / 2 + both % 2, span - 1);
    right = both - left;
  }
  const int64_t outputs = (size - 1) * stride + 1 + left + right - (span - 1);
  window.before = span - 1 - left;
  window.after = (size - 1) * stride + span - window.before - outputs;
  return {.outputs = outputs, .window = window};
}

}  // namespace keel
