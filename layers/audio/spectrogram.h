// Layers that compute spectrograms of sound: MelSpectrogram and STFTSpectrogram.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/layer.h>

namespace keel {

// Options of MelSpectrogram.
struct MelSpectrogramOptions {
  int64_t fft_length = 2048;                    // samples of a transform
  int64_t sequence_stride = 512;                // samples from one transform to the next
  std::optional<int64_t> sequence_length = {};  // samples of the window; unset: fft_length
  std::optional<std::string> window = "hann";   // or "hamming"; unset: no window
  int64_t sampling_rate = 16000;                // samples in a second
  int64_t num_mel_bins = 128;                   // bands of the result
  double min_freq = 20.0;                       // lower end of the first band, in hertz
  std::optional<double> max_freq = {};          // upper end of the last one; unset: half the rate
  bool power_to_db = true;                      // convert to decibels
  double top_db = 80.0;                         // decibels between the greatest and the least one
  double mag_exp = 2.0;                         // power of the magnitudes that bands sum
  double min_power = 1e-10;                     // least value of a band and of ref_power
  double ref_power = 1.0;                       // value of 0 decibels
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("fft_length", self.fft_length);
    field("sequence_stride", self.sequence_stride);
    field("sequence_length", self.sequence_length);
    field("window", self.window);
    field("sampling_rate", self.sampling_rate);
    field("num_mel_bins", self.num_mel_bins);
    field("min_freq", self.min_freq);
    field("max_freq", self.max_freq);
    field("power_to_db", self.power_to_db);
    field("top_db", self.top_db);
    field("mag_exp", self.mag_exp);
    field("min_power", self.min_power);
    field("ref_power", self.ref_power);
  }
};

// Computes mel spectrograms of sound (keras.layers.MelSpectrogram): the magnitudes of short-time
// Fourier transforms, whose frequencies are summed in overlapping triangular bands of equal width
// on the mel scale, 1127 ln(1 + f / 700). Input is [batch, samples] or [samples], of any numeric
// dtype; output is [..., bands, transforms] with samples / sequence_stride + 1 transforms. With
// power_to_db, the greatest value of the batch limits the others from below, as in Keras.
//
// Throws ValueError for lengths, strides and rates that are not positive, for a window longer than
// fft_length or of another name, for an input of another rank and for one of at most fft_length / 2
// samples.
class MelSpectrogramLayer final : public OptionsLayer<MelSpectrogramOptions> {
 public:
  static constexpr char kClassName[] = "MelSpectrogram";
  explicit MelSpectrogramLayer(Options options);

 private:
  Tensor call(const Tensor& x, const CallContext& context) override;
  Tensor decibels(const Tensor& bands) const;

  const std::vector<double> bands_;  // weights [fft_length / 2 + 1, num_mel_bins]
};

// Options of STFTSpectrogram.
struct STFTSpectrogramOptions {
  std::string mode = "log";                    // the output; see STFTSpectrogramLayer
  int64_t frame_length = 256;                  // samples of a frame
  std::optional<int64_t> frame_step = {};      // samples between frames; unset: half a frame
  std::optional<int64_t> fft_length = {};      // unset: the next power of two
  std::optional<std::string> window = "hann";  // or "hamming", "boxcar", "blackman"; unset: none
  bool periodic = false;                       // whether the window is periodic
  std::optional<std::string> scaling = "density";  // of the window; or "spectrum"; unset: none
  std::string padding = "valid";                   // or "same": zeros around the signal
  bool expand_dims = false;                        // give frequencies an axis of their own
  std::string data_format = "channels_last";       // or "channels_first": channels are axis 1
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("mode", self.mode);
    field("frame_length", self.frame_length);
    field("frame_step", self.frame_step);
    field("fft_length", self.fft_length);
    field("window", self.window);
    field("periodic", self.periodic);
    field("scaling", self.scaling);
    field("padding", self.padding);
    field("data_format", self.data_format);
    field("expand_dims", self.expand_dims);
  }
};

// Computes spectrograms by convolutions with trainable kernels (keras.layers.STFTSpectrogram).
// Input is [batch, samples, channels], floating-point. Each channel is transformed for itself.
// Output is [batch, frames, channels * frequencies], or [batch, frames, frequencies, channels] with
// expand_dims; "channels_first" puts channels (and frequencies) before frames. There are fft_length
// / 2 + 1 frequencies. Modes, for the transform z:
//   "magnitude"       |z|, at least sqrt(1e-7)
//   "log"             the logarithm of "magnitude"
//   "psd"             |z|^2, twice that except for the first and the last frequency
//   "real", "imag"    the real or the imaginary part
//   "angle"           the angle of z
//   "stft"            the real parts, followed by the imaginary ones: twice as many frequencies
// Weights: real_kernel and imag_kernel [frame_length, 1, frequencies], those that the mode needs.
//
// Throws ValueError for another mode, padding or data_format, for a frame_step that is not in [1,
// frame_length], for an fft_length below frame_length, and for an input of another rank; the errors
// of the initializer STFT; and TypeError unless the input is floating-point.
class STFTSpectrogramLayer final : public OptionsLayer<STFTSpectrogramOptions> {
 public:
  static constexpr char kClassName[] = "STFTSpectrogram";
  explicit STFTSpectrogramLayer(Options options);

 private:
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& x, const CallContext& context) override;
  Tensor transformed(const Tensor& signals, const Variable& kernel) const;
  Tensor spectrum(const Tensor& signals) const;
  int64_t step() const;
  int64_t frequencies() const;
  int64_t frames(int64_t samples) const;

  Variable real_kernel_, imag_kernel_;
};

namespace layers {
// Handles to the layers, under Keras's names.
using MelSpectrogram = LayerHandle<MelSpectrogramLayer>;
using STFTSpectrogram = LayerHandle<STFTSpectrogramLayer>;
}  // namespace layers

}  // namespace keel
