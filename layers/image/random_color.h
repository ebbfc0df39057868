// Random augmentations of colors: RandomBrightness, RandomContrast, RandomHue, RandomInvert,
// RandomSaturation, RandomSharpness, RandomPosterization, RandomColorDegeneration, RandomGrayscale
// and RandomColorJitter. Input is described in layers/image/image_layer.h; it has three channels
// for those that convert colors. Output has the same shape. Labels, masks and boxes do not change.
// They throw ValueError for factors outside the stated range and for an unknown data_format.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/framework/config/registry.h>
#include <keel/layers/image/image_layer.h>

namespace keel {

// Options of RandomColorLayer.
struct RandomColorOptions {
  FactorRange factor = {};                    // required, except for RandomInvert, which has 1.0
  ValueRange value_range = {0, 255};          // of the pixels
  std::optional<int64_t> seed = {};           // unset: the next stream of set_random_seed
  std::string data_format = "channels_last";  // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("factor", self.factor);
    field("value_range", self.value_range);
    field("seed", self.seed);
  }
};

// Changes the colors of each image by a factor f from `factor`. Results are clipped to value_range
// [low, high], except those of RandomInvert and RandomPosterization, which stay inside, and of
// RandomSaturation. A single factor x stands for a range.
//   class                    range of x        computes
//   RandomBrightness         [-x, x] in [-1, 1]  v + f (high - low)
//   RandomContrast           [0, x] in [0, 1]    mean + g (v - mean) for each channel, with g drawn
//                                                from [1 - range.low, 1 + range.high]
//   RandomHue                [0, x] in [0, 1]    the hue turned by f / 2, in a random direction
//   RandomInvert             [0, x] in [0, 1]    high - v, with probability f
//   RandomSaturation         [-x, x] in [-1, 1]  the saturation times f / (1 - f + 1e-7)
//   RandomSharpness          [0, x] in [0, 1]    2 f v + (1 - 2 f) smoothed v, by a mask of 3 x 3
//   RandomPosterization      [1, x] in [1, 8]    the upper f of 8 bits; f is an integer below
//                                                range.high, unless the range is one number
//   RandomColorDegeneration  [-x, x] in [-1, 1]  v + f (gray - v)
template <ClassName kName>
class RandomColorLayer final : public OptionsLayer<RandomColorOptions, AugmentationLayer> {
 public:
  static constexpr const char* kClassName = kName.text;
  using Options = RandomColorOptions;
  explicit RandomColorLayer(Options options);

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
  Tensor clipped(const Tensor& images) const;
};

// Changes the brightness; see RandomColorLayer.
using RandomBrightnessLayer = RandomColorLayer<"RandomBrightness">;
// Changes the contrast; see RandomColorLayer.
using RandomContrastLayer = RandomColorLayer<"RandomContrast">;
// Changes the hue; see RandomColorLayer.
using RandomHueLayer = RandomColorLayer<"RandomHue">;
// Changes the sign of colors; see RandomColorLayer.
using RandomInvertLayer = RandomColorLayer<"RandomInvert">;
// Changes the saturation; see RandomColorLayer.
using RandomSaturationLayer = RandomColorLayer<"RandomSaturation">;
// Changes the sharpness; see RandomColorLayer.
using RandomSharpnessLayer = RandomColorLayer<"RandomSharpness">;
// Changes the number of color levels; see RandomColorLayer.
using RandomPosterizationLayer = RandomColorLayer<"RandomPosterization">;
// Changes the amount of color; see RandomColorLayer.
using RandomColorDegenerationLayer = RandomColorLayer<"RandomColorDegeneration">;

// Options of RandomGrayscale.
struct RandomGrayscaleOptions {
  double factor = 0.5;                        // probability of each image, in [0, 1]
  std::string data_format = "channels_last";  // or "channels_first"
  std::optional<int64_t> seed = {};           // unset: the next stream of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("factor", self.factor);
    field("seed", self.seed);
  }
};

// Makes random images gray; all channels get the luminance (keras.layers.RandomGrayscale).
class RandomGrayscaleLayer final : public OptionsLayer<RandomGrayscaleOptions, AugmentationLayer> {
 public:
  static constexpr char kClassName[] = "RandomGrayscale";
  explicit RandomGrayscaleLayer(Options options);
  Config get_config() const override;

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
};

// Options of RandomColorJitter.
struct RandomColorJitterOptions {
  ValueRange value_range = {0, 255};                  // of the pixels
  std::optional<FactorRange> brightness_factor = {};  // of RandomBrightness; unset: leave it out
  std::optional<FactorRange> contrast_factor = {};    // of RandomContrast; unset: leave it out
  std::optional<FactorRange> saturation_factor = {};  // of RandomSaturation; unset: leave it out
  std::optional<FactorRange> hue_factor = {};         // of RandomHue; unset: leave it out
  std::optional<int64_t> seed = {};                   // unset: the next stream of set_random_seed
  std::string data_format = "channels_last";          // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("value_range", self.value_range);
    field("brightness_factor", self.brightness_factor);
    field("contrast_factor", self.contrast_factor);
    field("saturation_factor", self.saturation_factor);
    field("hue_factor", self.hue_factor);
    field("seed", self.seed);
  }
};

// Applies RandomBrightness, RandomContrast, RandomSaturation and RandomHue in this order, those
// with a factor (keras.layers.RandomColorJitter).
class RandomColorJitterLayer final
    : public OptionsLayer<RandomColorJitterOptions, AugmentationLayer> {
 public:
  static constexpr char kClassName[] = "RandomColorJitter";
  explicit RandomColorJitterLayer(Options options);

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;

  std::vector<std::shared_ptr<const ImageLayer>> parts_;
};

namespace layers {
// Handles to the layers, under Keras's names.
using RandomBrightness = LayerHandle<RandomBrightnessLayer>;
using RandomContrast = LayerHandle<RandomContrastLayer>;
using RandomHue = LayerHandle<RandomHueLayer>;
using RandomInvert = LayerHandle<RandomInvertLayer>;
using RandomSaturation = LayerHandle<RandomSaturationLayer>;
using RandomSharpness = LayerHandle<RandomSharpnessLayer>;
using RandomPosterization = LayerHandle<RandomPosterizationLayer>;
using RandomColorDegeneration = LayerHandle<RandomColorDegenerationLayer>;
using RandomGrayscale = LayerHandle<RandomGrayscaleLayer>;
using RandomColorJitter = LayerHandle<RandomColorJitterLayer>;
}  // namespace layers

}  // namespace keel
