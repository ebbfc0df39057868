#include <algorithm>
#include <cmath>

#include <keel/autodiff/internal/autocast.h>
#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/keras_ops/signal.h>
#include <keel/autodiff/ops.h>
#include <keel/framework/internal/math.h>
#include <keel/layers/audio/spectrogram.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

// Limits of fft_length and of the number of weights, which keep a config from exhausting memory.
constexpr int64_t kLongestTransform = int64_t{1} << 24, kMostWeights = int64_t{1} << 28;

// The mel scale of the Hidden Markov Model Toolkit.
double mel_of(double hertz) { return 1127.0 * math::log(1 + hertz / 700.0); }

// Returns the weights of each frequency of a transform in each band.
std::vector<double> band_weights(const MelSpectrogramOptions& options) {
  const int64_t frequencies = options.fft_length / 2 + 1, bands = options.num_mel_bins;
  const double low = mel_of(options.min_freq), high = mel_of(*options.max_freq);
  const double width = (high - low) / static_cast<double>(bands + 1);
  std::vector<double> out(frequencies * bands);
  // The toolkit leaves out the frequency 0.
  for (int64_t f = 1; f < frequencies; ++f) {
    const double hertz = static_cast<double>(options.sampling_rate) / 2 * static_cast<double>(f) /
                         static_cast<double>(frequencies - 1);
    for (int64_t b = 0; b < bands; ++b) {
      const double distance =
          std::abs(mel_of(hertz) - (low + width * static_cast<double>(b + 1))) / width;
      out[f * bands + b] = std::max(0.0, 1 - distance);
    }
  }
  return out;
}

MelSpectrogramOptions completed(MelSpectrogramOptions options) {
  if (options.sequence_length.value_or(0) == 0) options.sequence_length = options.fft_length;
  if (options.max_freq.value_or(0) == 0) {
    options.max_freq = static_cast<double>(options.sampling_rate / 2);
  }
  const auto fail = [](const auto&... problem) {
    throw ValueError("MelSpectrogram: ", problem...);
  };
  if (options.fft_length < 2 || options.sequence_stride < 1 || options.sampling_rate < 1 ||
      options.num_mel_bins < 1) {
    fail(
        "fft_length must be at least 2; sequence_stride, sampling_rate and num_mel_bins must be "
        "positive");
  }
  const int64_t frequencies = options.fft_length / 2 + 1;
  if (options.fft_length > kLongestTransform || options.num_mel_bins > kMostWeights / frequencies) {
    fail("fft_length ", options.fft_length, " with num_mel_bins ", options.num_mel_bins,
         " is too large; fft_length must be at most ", kLongestTransform,
         " and (fft_length / 2 + 1) * num_mel_bins at most ", kMostWeights);
  }
  if (*options.sequence_length < 1 || *options.sequence_length > options.fft_length) {
    fail("sequence_length must be in [1, fft_length], received ", *options.sequence_length,
         " with fft_length ", options.fft_length);
  }
  if (options.window && *options.window != "hann" && *options.window != "hamming") {
    fail("window must be hann or hamming, received '", *options.window, "'");
  }
  if (!(options.min_freq >= 0 && *options.max_freq > options.min_freq)) {
    fail("min_freq must be below max_freq, received ", options.min_freq, " and ",
         *options.max_freq);
  }
  return options;
}

}  // namespace

MelSpectrogramLayer::MelSpectrogramLayer(Options options)
    : OptionsLayer(kClassName, completed(std::move(options))), bands_(band_weights(options_)) {}

Tensor MelSpectrogramLayer::decibels(const Tensor& bands) const {
  const double reference = std::max(std::abs(options_.ref_power), options_.min_power);
  const double offset = 10 * math::log(reference) / math::log(10.0);
  const Tensor log = keras_ops::log10(keras_ops::maximum(bands, options_.min_power));
  const Tensor out = log * 10.0 - offset;
  if (out.size() == 0) return out;
  return ops::maximum(out, ops::max(out) - options_.top_db);
}

Tensor MelSpectrogramLayer::call(const Tensor& x, const CallContext&) {
  if (x.rank() != 1 && x.rank() != 2) {
    throw ValueError(kClassName, " ", name(),
                     ": input must be [batch, samples] or [samples], received shape ", x.shape());
  }
  const int64_t samples = x.dim(-1), length = options_.fft_length;
  if (samples != kUnknown && samples <= length / 2) {
    throw ValueError(kClassName, " ", name(), ": the input must have more than ", length / 2,
                     " samples, half of fft_length, received shape ", x.shape());
  }
  if (x.is_symbolic()) {
    const int64_t padded = samples + length / 2 * 2;
    const int64_t times =
        samples == kUnknown ? kUnknown : (padded - length) / options_.sequence_stride + 1;
    return Tensor::symbolic(
        {.shape = x.shape().drop_last() + Shape{options_.num_mel_bins, times}, .dtype = dtype()});
  }
  // Keras computes spectrograms in float32 under mixed policies, too.
  const AutocastScope exact(false);
  const keras_ops::Complex z = keras_ops::stft(
      as_dtype(x, dtype()), *options_.sequence_length, options_.sequence_stride, length,
      options_.window ? keras_ops::SignalWindow(*options_.window) : std::nullopt);
  Tensor power = ops::square(z.first) + ops::square(z.second);
  // The square needs no root, whose slope at 0 is infinite.
  if (options_.mag_exp != 2) {
    power = ops::pow(ops::sqrt(power), as_dtype(Tensor::scalar(options_.mag_exp), dtype()));
  }
  const Tensor weights =
      as_dtype(Tensor::from(bands_, {length / 2 + 1, options_.num_mel_bins}), dtype());
  Tensor out = ops::matmul(power, weights);
  if (options_.power_to_db) out = decibels(out);
  return x.rank() == 1 ? ops::transpose(out) : ops::transpose(out, {0, 2, 1});
}

KEEL_REGISTER(Layer, MelSpectrogramLayer, .package = "keras")

}  // namespace keel
