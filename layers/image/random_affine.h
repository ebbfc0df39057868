// Random augmentations that move all pixels by an affine map: RandomRotation, RandomTranslation,
// RandomZoom and RandomShear. Input is described in layers/image/image_layer.h. Output has the same
// shape. Masks move with the images; labels do not change.
//
// fill_mode says what is outside of an image: "constant" (fill_value), "nearest", "wrap" or
// "reflect" (the image reflected with its edge). `interpolation` is "nearest" or "bilinear". The
// layers throw ValueError for other names, for factors outside the stated range and for an unknown
// data_format, and NotImplementedError for bounding boxes.
#pragma once

#include <array>
#include <optional>
#include <string>

#include <keel/framework/config/registry.h>
#include <keel/layers/image/image_layer.h>

namespace keel {

// Options of RandomRotation.
struct RandomRotationOptions {
  FactorRange factor = {};                    // required; turns in [-1, 1]; x means [-x, x]
  std::string fill_mode = "reflect";          // see the top of this file
  std::string interpolation = "bilinear";     // or "nearest"
  std::optional<int64_t> seed = {};           // unset: the next stream of set_random_seed
  double fill_value = 0.0;                    // for the mode "constant"
  std::string data_format = "channels_last";  // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("factor", self.factor);
    field("fill_mode", self.fill_mode);
    field("fill_value", self.fill_value);
    field("interpolation", self.interpolation);
    field("seed", self.seed);
  }
};

// Options of RandomTranslation.
struct RandomTranslationOptions {
  FactorRange height_factor = {};     // required; shift down, in heights; see RandomAffineLayer
  FactorRange width_factor = {};      // required; shift to the right, in widths
  std::string fill_mode = "reflect";  // see the top of this file
  std::string interpolation = "bilinear";     // or "nearest"
  std::optional<int64_t> seed = {};           // unset: the next stream of set_random_seed
  double fill_value = 0.0;                    // for the mode "constant"
  std::string data_format = "channels_last";  // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("height_factor", self.height_factor);
    field("width_factor", self.width_factor);
    field("fill_mode", self.fill_mode);
    field("interpolation", self.interpolation);
    field("seed", self.seed);
    field("fill_value", self.fill_value);
  }
};

// Options of RandomZoom.
struct RandomZoomOptions {
  FactorRange height_factor = {};                // required; see RandomAffineLayer
  std::optional<FactorRange> width_factor = {};  // unset: the zoom of the height
  std::string fill_mode = "reflect";             // see the top of this file
  std::string interpolation = "bilinear";        // or "nearest"
  std::optional<int64_t> seed = {};              // unset: the next stream of set_random_seed
  double fill_value = 0.0;                       // for the mode "constant"
  std::string data_format = "channels_last";     // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    RandomTranslationOptions::fields(self, field);
  }
};

// Options of RandomShear.
struct RandomShearOptions {
  FactorRange x_factor = 0.0;                 // in [0, 1]; x means [-x, x]
  FactorRange y_factor = 0.0;                 // in [0, 1]; x means [-x, x]
  std::string interpolation = "bilinear";     // or "nearest"
  std::string fill_mode = "reflect";          // see the top of this file
  double fill_value = 0.0;                    // for the mode "constant"
  std::string data_format = "channels_last";  // or "channels_first"
  std::optional<int64_t> seed = {};           // unset: the next stream of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("x_factor", self.x_factor);
    field("y_factor", self.y_factor);
    field("fill_mode", self.fill_mode);
    field("interpolation", self.interpolation);
    field("seed", self.seed);
    field("fill_value", self.fill_value);
  }
};

// Moves the pixels of each image by its own affine map. Numbers are drawn evenly from their ranges;
// a number x stands for the range [-x, x].
//   RandomRotation     turns counterclockwise around the center, by 2 pi times a number from
//                      `factor`, in [-1, 1]
//   RandomTranslation  moves down and to the right, by numbers from height_factor and
//                      width_factor, in [-1, 1], times the size of the image
//   RandomZoom         shows 1 + f times the height and 1 + g times the width of the image around
//                      its center, for f and g from height_factor and width_factor, in [-1, 1]:
//                      a negative number zooms in
//   RandomShear        pixel (x, y) is the one at (x + s y, t x + y), for s and t from x_factor
//                      and y_factor, in [0, 1], both negated with probability 1/2
template <ClassName kName, class OptionsType>
class RandomAffineLayer final : public OptionsLayer<OptionsType, AugmentationLayer> {
 public:
  static constexpr const char* kClassName = kName.text;
  using Options = OptionsType;
  explicit RandomAffineLayer(Options options);

 private:
  using Base = OptionsLayer<OptionsType, AugmentationLayer>;
  using Base::options_;
  // The numbers of keras_ops::image::affine_transform() for an image.
  std::array<double, 8> map_of(const ImageRandom& random, int64_t image, double height,
                               double width) const;
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
  bool moves_pixels() const override { return true; }
};

// Rotates images; see RandomAffineLayer.
using RandomRotationLayer = RandomAffineLayer<"RandomRotation", RandomRotationOptions>;
// Shifts images; see RandomAffineLayer.
using RandomTranslationLayer = RandomAffineLayer<"RandomTranslation", RandomTranslationOptions>;
// Scales images; see RandomAffineLayer.
using RandomZoomLayer = RandomAffineLayer<"RandomZoom", RandomZoomOptions>;
// Shears images; see RandomAffineLayer.
using RandomShearLayer = RandomAffineLayer<"RandomShear", RandomShearOptions>;

namespace layers {
// Handles to the layers, under Keras's names.
using RandomRotation = LayerHandle<RandomRotationLayer>;
using RandomTranslation = LayerHandle<RandomTranslationLayer>;
using RandomZoom = LayerHandle<RandomZoomLayer>;
using RandomShear = LayerHandle<RandomShearLayer>;
}  // namespace layers

}  // namespace keel
