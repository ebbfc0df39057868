#include <absl/strings/str_cat.h>
#include <algorithm>
#include <bit>

#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/spatial_ops.h>
#include <keel/framework/internal/stft_initializer.h>
#include <keel/layers/audio/spectrogram.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/internal/spatial_layout.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

constexpr double kEpsilon = 1e-7;  // of keras.backend

Initializer kernel_initializer(const STFTSpectrogramOptions& options, const std::string& side) {
  return Initializer(internal::stft_initializer({.side = side,
                                                 .window = options.window,
                                                 .scaling = options.scaling,
                                                 .periodic = options.periodic}));
}

}  // namespace

STFTSpectrogramLayer::STFTSpectrogramLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  const std::string caller = absl::StrCat(kClassName, " ", name());
  spatial_layout(1, options_.data_format, caller);  // throws for an unknown data format
  constexpr std::string_view kModes[] = {"log",  "magnitude", "psd", "real",
                                         "imag", "angle",     "stft"};
  if (std::ranges::find(kModes, options_.mode) == std::end(kModes)) {
    throw ValueError(caller, ": mode must be log, magnitude, psd, real, imag, angle or stft, ",
                     "received '", options_.mode, "'");
  }
  if (options_.padding != "valid" && options_.padding != "same") {
    throw ValueError(caller, ": padding must be valid or same, received '", options_.padding, "'");
  }
  if (options_.frame_length < 2 || step() < 1 || step() > options_.frame_length) {
    throw ValueError(caller, ": frame_length must be at least 2 and frame_step in [1, ",
                     "frame_length], received ", options_.frame_length, " and ", step());
  }
  if (options_.fft_length && *options_.fft_length < options_.frame_length) {
    throw ValueError(caller, ": fft_length must not be below frame_length, received ",
                     *options_.fft_length, " and ", options_.frame_length);
  }
  constexpr int64_t kLongest = int64_t{1} << 20;
  if (options_.frame_length > kLongest || options_.fft_length.value_or(0) > kLongest) {
    throw ValueError(caller, ": frame_length and fft_length must be at most ", kLongest,
                     ", received ", options_.frame_length, " and ",
                     options_.fft_length.value_or(0));
  }
  kernel_initializer(options_, "real");  // throws for an unknown window or scaling
}

int64_t STFTSpectrogramLayer::step() const {
  const int64_t step = options_.frame_step.value_or(0);
  return step == 0 ? options_.frame_length / 2 : step;
}

int64_t STFTSpectrogramLayer::frequencies() const {
  const auto next_power = std::bit_ceil(static_cast<uint64_t>(options_.frame_length));
  return options_.fft_length.value_or(static_cast<int64_t>(next_power)) / 2 + 1;
}

int64_t STFTSpectrogramLayer::frames(int64_t samples) const {
  if (samples == kUnknown) return kUnknown;
  if (options_.padding == "same") return (samples + step() - 1) / step();
  return samples < options_.frame_length ? 0 : (samples - options_.frame_length) / step() + 1;
}

void STFTSpectrogramLayer::build_weights(const TensorSpec&) {
  const auto kernel = [&](const std::string& side) {
    return add_weight({.name = side + "_kernel",
                       .shape = {options_.frame_length, 1, frequencies()},
                       .initializer = kernel_initializer(options_, side),
                       .dtype = dtype()});
  };
  if (options_.mode != "imag") real_kernel_ = kernel("real");
  if (options_.mode != "real") imag_kernel_ = kernel("imag");
}

// Signals are [signals, samples, 1], the result is [signals, frames, frequencies].
Tensor STFTSpectrogramLayer::transformed(const Tensor& signals, const Variable& kernel) const {
  const int64_t samples = signals.dim(1), length = options_.frame_length;
  int64_t zeros = 0;
  if (options_.padding == "same") {
    zeros = std::max<int64_t>((frames(samples) - 1) * step() + length - samples, 0);
  }
  return ops::convolution(
      signals, kernel, Tensor(),
      {{.size = length, .stride = step(), .before = zeros / 2, .after = zeros - zeros / 2}});
}

Tensor STFTSpectrogramLayer::spectrum(const Tensor& signals) const {
  const std::string& mode = options_.mode;
  if (mode == "real") return transformed(signals, real_kernel_);
  const Tensor imag = transformed(signals, imag_kernel_);
  if (mode == "imag") return imag;
  const Tensor real = transformed(signals, real_kernel_);
  if (mode == "stft") return ops::concat({real, imag}, 2);
  if (mode == "angle") return keras_ops::arctan2(imag, real);
  const Tensor power = ops::square(real) + ops::square(imag);
  if (mode == "psd") {
    const int64_t inside = power.dim(2) - 2;
    return inside <= 0 ? power : power + ops::pad(ops::slice(power, 2, 1, inside), 2, 1, 1);
  }
  const Tensor magnitude = ops::sqrt(keras_ops::maximum(power, kEpsilon));
  return mode == "magnitude" ? magnitude : ops::log(keras_ops::maximum(magnitude, kEpsilon));
}

Tensor STFTSpectrogramLayer::call(const Tensor& input, const CallContext&) {
  const std::string caller = absl::StrCat(kClassName, " ", name());
  const SpatialLayout layout = spatial_layout(1, options_.data_format, caller);
  layout.check_rank(input.shape(), caller);
  if (!is_floating(input.dtype())) {
    throw TypeError(caller, ": input must be floating-point, received ", input.dtype());
  }
  const int64_t batch = input.dim(0), samples = input.dim(layout.spatial_axis(0)),
                channels = input.dim(layout.channel_axis());
  const int64_t bins = frequencies() * (options_.mode == "stft" ? 2 : 1);
  if (samples != kUnknown && frames(samples) == 0) {
    throw ValueError(caller, ": the input is shorter than a frame of ", options_.frame_length,
                     " samples, received shape ", input.shape());
  }
  const int64_t times = frames(samples);
  if (input.is_symbolic()) {
    const int64_t joined = channels == kUnknown ? kUnknown : channels * bins;
    const Shape shape =
        options_.expand_dims ? Shape{batch, times, bins, channels} : Shape{batch, times, joined};
    const Shape first =
        options_.expand_dims ? Shape{batch, channels, times, bins} : Shape{batch, joined, times};
    return Tensor::symbolic({.shape = layout.channels_last ? shape : first, .dtype = dtype()});
  }
  const Tensor x = as_dtype(input, dtype());
  const Tensor by_channel = layout.channels_last ? ops::transpose(x, {0, 2, 1}) : x;
  const Tensor all =
      ops::reshape(spectrum(ops::reshape(by_channel, {batch * channels, samples, 1})),
                   {batch, channels, times, bins});
  if (options_.expand_dims) return layout.channels_last ? ops::transpose(all, {0, 2, 3, 1}) : all;
  if (!layout.channels_last) {
    return ops::reshape(ops::transpose(all, {0, 1, 3, 2}), {batch, channels * bins, times});
  }
  return ops::reshape(ops::transpose(all, {0, 2, 1, 3}), {batch, times, channels * bins});
}

KEEL_REGISTER(Layer, STFTSpectrogramLayer, .package = "keras")

}  // namespace keel
