// Layers that change the distribution of pixel values: AutoContrast, Equalization and Solarization.
// Input is described in layers/image/image_layer.h. Output has the same shape. Labels, masks and
// boxes do not change. They throw ValueError for an unknown data_format.
#pragma once

#include <optional>
#include <string>

#include <keel/layers/image/image_layer.h>

namespace keel {

// Options of AutoContrast.
struct AutoContrastOptions {
  ValueRange value_range = {0, 255};          // of the pixels
  std::string data_format = "channels_last";  // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("value_range", self.value_range);
  }
};

// Stretches the values of each channel of each image to the whole value_range
// (keras.layers.AutoContrast), in training and outside. A channel of a single value stays as it is.
class AutoContrastLayer final : public OptionsLayer<AutoContrastOptions, ImageLayer> {
 public:
  static constexpr char kClassName[] = "AutoContrast";
  explicit AutoContrastLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {}

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
};

// Options of Equalization.
struct EqualizationOptions {
  ValueRange value_range = {0, 255};          // of the pixels
  int64_t bins = 256;                         // of the histogram, > 1
  std::string data_format = "channels_last";  // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("bins", self.bins);
    field("value_range", self.value_range);
  }
};

// Makes the histogram of each channel even (keras.layers.Equalization), in training and outside. As
// in Keras, the histogram is that of the whole batch, and a channel whose values share a bin stays
// as it is. Other results have no gradient. Throws ValueError unless there are two bins or more.
class EqualizationLayer final : public OptionsLayer<EqualizationOptions, ImageLayer> {
 public:
  static constexpr char kClassName[] = "Equalization";
  explicit EqualizationLayer(Options options);

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
  Tensor equalized(const Tensor& channel) const;
};

// Options of Solarization.
struct SolarizationOptions {
  FactorRange addition_factor = 0.0;          // in [0, 1]; a number x stands for [0, x]
  FactorRange threshold_factor = 0.0;         // in [0, 1]; a number x stands for [0, x]
  ValueRange value_range = {0, 255};          // of the pixels
  std::optional<int64_t> seed = {};           // unset: the next stream of set_random_seed
  std::string data_format = "channels_last";  // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("value_range", self.value_range);
    field("addition_factor", self.addition_factor);
    field("threshold_factor", self.threshold_factor);
    field("seed", self.seed);
  }
};

// In training, inverts the pixels above a threshold (keras.layers.Solarization). With values scaled
// to [0, 255], a number from [addition.low, 255 addition.high] is added to those of each image,
// which are clipped; each result v that is not below a number from [threshold.low, 255
// threshold.high] becomes 255 - v. Throws ValueError for factors outside [0, 1].
class SolarizationLayer final : public OptionsLayer<SolarizationOptions, AugmentationLayer> {
 public:
  static constexpr char kClassName[] = "Solarization";
  explicit SolarizationLayer(Options options);

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
};

namespace layers {
// Handles to the layers, under Keras's names.
using AutoContrast = LayerHandle<AutoContrastLayer>;
using Equalization = LayerHandle<EqualizationLayer>;
using Solarization = LayerHandle<SolarizationLayer>;
}  // namespace layers

}  // namespace keel
