// Random augmentations that move or replace regions of images: RandomFlip, RandomCrop and
// RandomErasing. Input is described in layers/image/image_layer.h. Masks are flipped and cropped
// with the images; labels do not change. They throw ValueError for options outside the stated range
// and for an unknown data_format.
#pragma once

#include <optional>
#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/image/image_layer.h>

namespace keel {

// Options of RandomFlip.
struct RandomFlipOptions {
  std::string mode = "horizontal_and_vertical";  // or "horizontal", "vertical"
  std::optional<int64_t> seed = {};              // unset: the next stream of set_random_seed
  std::string data_format = "channels_last";     // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("seed", self.seed);
    field("mode", self.mode);
  }
};

// Flips each image with probability 1/2: left and right ("horizontal"), top and bottom
// ("vertical"), or both together, as Keras does (keras.layers.RandomFlip). Throws
// NotImplementedError for bounding boxes.
class RandomFlipLayer final : public OptionsLayer<RandomFlipOptions, AugmentationLayer> {
 public:
  static constexpr char kClassName[] = "RandomFlip";
  explicit RandomFlipLayer(Options options);

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
  bool moves_pixels() const override { return true; }
};

// Options of RandomCrop.
struct RandomCropOptions {
  int64_t height = 0;                         // required; of the result
  int64_t width = 0;                          // required; of the result
  std::optional<int64_t> seed = {};           // unset: the next stream of set_random_seed
  std::string data_format = "channels_last";  // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("height", self.height);
    field("width", self.width);
    field("seed", self.seed);
  }
};

// Cuts a window out of the images, at one random place for the whole batch
// (keras.layers.RandomCrop). Output in training is [batch, height, width, channels] of the options'
// size. Images that are not larger in both directions are cropped at the center to the ratio of the
// result and resized bilinearly. Outside of training, images keep their size, as in Keras, although
// symbolic results always have the options' size; resize or crop the images before a model
// predicts. Throws NotImplementedError for bounding boxes.
class RandomCropLayer final : public OptionsLayer<RandomCropOptions, AugmentationLayer> {
 public:
  static constexpr char kClassName[] = "RandomCrop";
  explicit RandomCropLayer(Options options);

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
  Tensor transform_masks(const Tensor& masks, const ImageRandom& random) const override;
  bool moves_pixels() const override { return true; }
  Shape output_shape(const Shape& images) const override;
  Tensor cropped(const Tensor& images, const ImageRandom& random,
                 const std::string& interpolation) const;
};

// Options of RandomErasing.
struct RandomErasingOptions {
  FactorRange factor = 1.0;                     // of the probability, in [0, 1]; x means [0, x]
  FactorRange scale = {0.02, 0.33};             // of the area, in [0, 1]; x means [0, x]
  std::optional<ScalarOrList> fill_value = {};  // one number, or three; unset: normal noise
  ValueRange value_range = {0, 255};            // of the pixels
  std::optional<int64_t> seed = {};             // unset: the next stream of set_random_seed
  std::string data_format = "channels_last";    // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("factor", self.factor);
    field("scale", self.scale);
    field("fill_value", self.fill_value);
    field("value_range", self.value_range);
    field("seed", self.seed);
  }
};

// Replaces a rectangle of random images (keras.layers.RandomErasing; Zhong et al. 2017). The
// probability of each image is first drawn from `factor`. The sides of the rectangle are the roots
// of numbers from `scale`, times those of the image, at a random place. It is filled with
// fill_value, or with normal noise of the standard deviation value_range.high, clipped to
// value_range. Masks and boxes do not change.
class RandomErasingLayer final : public OptionsLayer<RandomErasingOptions, AugmentationLayer> {
 public:
  static constexpr char kClassName[] = "RandomErasing";
  // Also throws ValueError for a fill_value of other than one or three numbers.
  explicit RandomErasingLayer(Options options);

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
  Tensor filling(const Tensor& images, const ImageRandom& random) const;
};

namespace layers {
// Handles to the layers, under Keras's names.
using RandomFlip = LayerHandle<RandomFlipLayer>;
using RandomCrop = LayerHandle<RandomCropLayer>;
using RandomErasing = LayerHandle<RandomErasingLayer>;
}  // namespace layers

}  // namespace keel
