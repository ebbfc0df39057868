// Tests layers/audio/mel_spectrogram.cc and stft_spectrogram.cc.
#include <keel/layers/audio/spectrogram.h>

#include <cmath>
#include <numbers>

#include <keel/layers/functional/functional.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"

namespace keel::spectrogram_test {

using layers::MelSpectrogram;
using layers::STFTSpectrogram;
using testing::HasSubstr;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::message_of;

// A sine of a frequency, given in periods per sample.
Tensor sine(int64_t samples, double frequency) {
  std::vector<double> out(samples);
  for (int64_t i = 0; i < samples; ++i) {
    out[i] = std::sin(2 * std::numbers::pi * frequency * static_cast<double>(i));
  }
  return Tensor::from(out, {1, samples}).cast(DType::kFloat32);
}

int64_t greatest(const Tensor& x) {
  const std::vector<float> values = x.to_vector<float>();
  return std::ranges::max_element(values) - values.begin();
}

TEST(MelSpectrogramTest, AToneAppearsInItsBand) {
  const MelSpectrogramOptions options = {.fft_length = 256,
                                         .sequence_stride = 256,
                                         .sampling_rate = 8000,
                                         .num_mel_bins = 20,
                                         .min_freq = 0};
  const MelSpectrogram layer(options);
  const Tensor low = layer(sine(256, 0.05)), high = layer(sine(256, 0.4));
  EXPECT_EQ(low.shape(), Shape({1, 20, 2}));
  EXPECT_LT(greatest(low) / 2, greatest(high) / 2);
  // 400 hertz is 509 mel of 2146, so it is in band 509 / 2146 * 21 - 1.
  EXPECT_EQ(greatest(low) / 2, 4);
}

TEST(MelSpectrogramTest, DecibelsAreLimitedFromBelow) {
  const MelSpectrogram layer(
      {.fft_length = 64, .sequence_stride = 32, .num_mel_bins = 8, .top_db = 20});
  const std::vector<float> y = layer(sine(256, 0.25)).to_vector<float>();
  const auto [low, high] = std::ranges::minmax(y);
  EXPECT_NEAR(high - low, 20, 1e-4);
}

TEST(MelSpectrogramTest, GradientsMatchFiniteDifferences) {
  for (const double power : {1.0, 2.0}) {
    testing_support::expect_gradients_are_slopes(MelSpectrogram({.fft_length = 8,
                                                                 .sequence_stride = 4,
                                                                 .window = "hamming",
                                                                 .num_mel_bins = 3,
                                                                 .power_to_db = false,
                                                                 .mag_exp = power,
                                                                 .dtype = DType::kFloat64}),
                                                 testing_support::distinct_doubles({1, 12}));
  }
}

TEST(MelSpectrogramTest, RejectsInvalidOptionsAndInputs) {
  EXPECT_THROW(MelSpectrogram({.sequence_stride = 0}), ValueError);
  EXPECT_THROW(MelSpectrogram({.fft_length = 8, .sequence_length = 9}), ValueError);
  EXPECT_THROW(MelSpectrogram({.window = "kaiser"}), ValueError);
  EXPECT_THROW(MelSpectrogram({.min_freq = 100, .max_freq = 50}), ValueError);
  const MelSpectrogram layer({.fft_length = 8, .sequence_stride = 4, .num_mel_bins = 3});
  EXPECT_THAT(message_of<ValueError>([&] { layer(Tensor::zeros({1, 4})); }),
              HasSubstr("more than 4 samples"));
  EXPECT_THROW(layer(Tensor::zeros({1, 16, 1})), ValueError);
}

TEST(STFTSpectrogramTest, MagnitudeIsThatOfTheTransform) {
  const Tensor x = sine(64, 0.125).reshaped({1, 64, 1});
  const STFTSpectrogram layer(
      {.mode = "magnitude", .frame_length = 16, .window = {}, .scaling = {}});
  const Tensor y = layer(x);
  EXPECT_EQ(y.shape(), Shape({1, 7, 9}));
  // A sine of two periods in a frame has half of the frame's length at this frequency.
  EXPECT_NEAR(y.to_vector<float>()[2], 8, 1e-4);
  EXPECT_NEAR(y.to_vector<float>()[5], std::sqrt(1e-7), 1e-4);
}

TEST(STFTSpectrogramTest, ShapesFollowTheDataFormat) {
  const STFTSpectrogramOptions options = {
      .mode = "stft", .frame_length = 6, .fft_length = 10, .padding = "same"};
  STFTSpectrogramOptions last = options, first = options;
  last.expand_dims = first.expand_dims = true;
  first.data_format = "channels_first";
  const Tensor x = layers::input({.shape = {12, 2}});
  EXPECT_EQ(STFTSpectrogram(options)(x).shape(), Shape({kUnknown, 4, 24}));
  EXPECT_EQ(STFTSpectrogram(last)(x).shape(), Shape({kUnknown, 4, 12, 2}));
  EXPECT_EQ(STFTSpectrogram(last)(Tensor::zeros({3, 12, 2})).shape(), Shape({3, 4, 12, 2}));
  EXPECT_EQ(STFTSpectrogram(first)(Tensor::zeros({3, 2, 12})).shape(), Shape({3, 2, 4, 12}));
}

TEST(STFTSpectrogramTest, GradientsMatchFiniteDifferences) {
  // The angle jumps where the imaginary part of a frequency is 0; a record of Keras checks its
  // slope.
  for (const char* mode : {"log", "psd", "stft", "imag"}) {
    testing_support::expect_gradients_are_slopes(
        STFTSpectrogram(
            {.mode = mode, .frame_length = 4, .window = "hamming", .dtype = DType::kFloat64}),
        testing_support::distinct_doubles({1, 8, 2}));
  }
}

TEST(STFTSpectrogramTest, RejectsInvalidOptionsAndInputs) {
  EXPECT_THROW(STFTSpectrogram({.mode = "power"}), ValueError);
  EXPECT_THROW(STFTSpectrogram({.padding = "causal"}), ValueError);
  EXPECT_THROW(STFTSpectrogram({.frame_length = 8, .frame_step = 9}), ValueError);
  EXPECT_THROW(STFTSpectrogram({.frame_length = 8, .fft_length = 4}), ValueError);
  EXPECT_THROW(STFTSpectrogram({.window = "kaiser"}), ValueError);
  EXPECT_THROW(STFTSpectrogram({.scaling = "magnitude"}), ValueError);
  const STFTSpectrogram layer({.frame_length = 8});
  EXPECT_THROW(layer(Tensor::zeros({1, 16, 1}, DType::kInt32)), TypeError);
  EXPECT_THROW(layer(Tensor::zeros({1, 7, 1})), ValueError);
  EXPECT_THROW(layer(Tensor::zeros({1, 16})), ValueError);
}

TEST(SpectrogramTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "MelSpectrogram",
                         .config = R"({"fft_length": 8, "sequence_stride": 4, "num_mel_bins": 3})",
                         .inputs = float_spec({2, 12}),
                         .output = float_spec({2, 3, 4})});
  expect_layer_contract({.class_name = "STFTSpectrogram",
                         .config = R"({"mode": "psd", "frame_length": 4, "window": null})",
                         .inputs = float_spec({2, 8, 1}),
                         .output = float_spec({2, 3, 3}),
                         .trainable_weights = 2,
                         .weights = 2});
}

TEST(SpectrogramTest, LengthsAreLimited) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_THROW(MelSpectrogram({.fft_length = kHuge, .num_mel_bins = 8}), ValueError);
  EXPECT_THROW(MelSpectrogram({.num_mel_bins = kHuge}), ValueError);
  EXPECT_THROW(STFTSpectrogram({.frame_length = kHuge}), ValueError);
  EXPECT_THROW(STFTSpectrogram({.fft_length = kHuge}), ValueError);
}

}  // namespace keel::spectrogram_test
