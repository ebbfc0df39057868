// Random augmentations that distort or blur images: RandomPerspective, RandomElasticTransform and
// RandomGaussianBlur. Input is described in layers/image/image_layer.h. Output has the same shape.
// Labels do not change. Each image is changed with a probability that is first drawn from `factor`,
// in [0, 1], where a number x stands for [0, x]. They throw ValueError for options outside the
// stated range and for an unknown data_format.
#pragma once

#include <optional>
#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/image/image_layer.h>

namespace keel {

// Options of RandomPerspective.
struct RandomPerspectiveOptions {
  FactorRange factor = 1.0;                   // range of the probability
  double scale = 1.0;                         // greatest shift, in [0, 1]; see the layer
  std::string interpolation = "bilinear";     // or "nearest"
  double fill_value = 0.0;                    // of pixels outside of the image
  std::optional<int64_t> seed = {};           // unset: the next stream of set_random_seed
  std::string data_format = "channels_last";  // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("factor", self.factor);
    field("scale", self.scale);
    field("interpolation", self.interpolation);
    field("fill_value", self.fill_value);
    field("seed", self.seed);
  }
};

// Moves the corners of images (keras.layers.RandomPerspective). Each coordinate of a corner, which
// is 0 or the last position, is multiplied by a number from [1 - scale / 2, 1 + scale / 2]. Masks
// move with the images. Throws NotImplementedError for bounding boxes.
class RandomPerspectiveLayer final
    : public OptionsLayer<RandomPerspectiveOptions, AugmentationLayer> {
 public:
  static constexpr char kClassName[] = "RandomPerspective";
  explicit RandomPerspectiveLayer(Options options);

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
  bool moves_pixels() const override { return true; }
};

// Options of RandomElasticTransform.
struct RandomElasticTransformOptions {
  FactorRange factor = 1.0;                   // range of the probability
  FactorRange scale = 1.0;                    // of the distortion, in [0, 1]; x means [0, x]
  std::string interpolation = "bilinear";     // or "nearest"
  std::string fill_mode = "reflect";          // of keras_ops::image::map_coordinates()
  double fill_value = 0.0;                    // for the mode "constant"
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
    field("scale", self.scale);
    field("interpolation", self.interpolation);
    field("fill_mode", self.fill_mode);
    field("fill_value", self.fill_value);
    field("value_range", self.value_range);
    field("seed", self.seed);
  }
};

// Moves pixels by smooth random shifts (keras.layers.RandomElasticTransform): those of
// keras_ops::image::elastic_transform() with alpha 0.1 s times the longer side of the image and
// sigma 0.05 s times the shorter one, for a number s from `scale` that is drawn for the whole
// batch. Results are clipped to value_range. Masks move with the images, without interpolation.
// Throws NotImplementedError for bounding boxes.
class RandomElasticTransformLayer final
    : public OptionsLayer<RandomElasticTransformOptions, AugmentationLayer> {
 public:
  static constexpr char kClassName[] = "RandomElasticTransform";
  explicit RandomElasticTransformLayer(Options options);

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
  Tensor transform_masks(const Tensor& masks, const ImageRandom& random) const override;
  bool moves_pixels() const override { return true; }
  Tensor distorted(const Tensor& images, const ImageRandom& random,
                   const std::string& interpolation) const;
};

// Options of RandomGaussianBlur.
struct RandomGaussianBlurOptions {
  FactorRange factor = 1.0;                   // range of the probability
  Length2D kernel_size = 3;                   // columns and rows of the filter, odd
  FactorRange sigma = 1.0;                    // in [0, 1]; a number x stands for [0, x]
  ValueRange value_range = {0, 255};          // of the pixels
  std::string data_format = "channels_last";  // or "channels_first"
  std::optional<int64_t> seed = {};           // unset: the next stream of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("factor", self.factor);
    field("kernel_size", self.kernel_size);
    field("sigma", self.sigma);
    field("value_range", self.value_range);
    field("seed", self.seed);
  }
};

// Blurs images by a Gaussian (keras.layers.RandomGaussianBlur), whose standard deviations along
// both axes are numbers from `sigma`, drawn for the whole batch. Results are clipped to
// value_range. Masks and boxes do not change.
class RandomGaussianBlurLayer final
    : public OptionsLayer<RandomGaussianBlurOptions, AugmentationLayer> {
 public:
  static constexpr char kClassName[] = "RandomGaussianBlur";
  explicit RandomGaussianBlurLayer(Options options);

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
};

namespace layers {
// Handles to the layers, under Keras's names.
using RandomPerspective = LayerHandle<RandomPerspectiveLayer>;
using RandomElasticTransform = LayerHandle<RandomElasticTransformLayer>;
using RandomGaussianBlur = LayerHandle<RandomGaussianBlurLayer>;
}  // namespace layers

}  // namespace keel
