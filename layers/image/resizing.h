// Layers that change the size of images: Resizing and CenterCrop. Input is described in
// layers/image/image_layer.h. Masks change with the images. They throw ValueError for sizes that
// are not positive and for an unknown data_format, and NotImplementedError for bounding boxes.
#pragma once

#include <string>

#include <keel/layers/image/image_layer.h>

namespace keel {

// Options of Resizing.
struct ResizingOptions {
  int64_t height = 0;                         // required; of the result
  int64_t width = 0;                          // required; of the result
  std::string interpolation = "bilinear";     // or "nearest", "bicubic", "lanczos3", "lanczos5"
  bool crop_to_aspect_ratio = false;          // first crop the center to the ratio of the result
  bool pad_to_aspect_ratio = false;           // first pad both ends alike, nearly to this ratio
  std::string fill_mode = "constant";         // the only one
  double fill_value = 0.0;                    // value of padded pixels
  bool antialias = false;                     // widen the windows when images become smaller
  std::string data_format = "channels_last";  // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("height", self.height);
    field("width", self.width);
    field("interpolation", self.interpolation);
    field("crop_to_aspect_ratio", self.crop_to_aspect_ratio);
    field("pad_to_aspect_ratio", self.pad_to_aspect_ratio);
    field("fill_mode", self.fill_mode);
    field("fill_value", self.fill_value);
    field("antialias", self.antialias);
  }
};

// Resizes images (keras.layers.Resizing) as keras_ops::image::resize() does. Output is [batch,
// height, width, channels] of the options' size. Integer images keep their dtype; their values are
// rounded and clipped to its range. Throws ValueError for an unknown interpolation or fill_mode,
// and if both ratios are to be kept.
class ResizingLayer final : public OptionsLayer<ResizingOptions, ImageLayer> {
 public:
  static constexpr char kClassName[] = "Resizing";
  explicit ResizingLayer(Options options);

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
  Tensor transform_masks(const Tensor& masks, const ImageRandom& random) const override;
  bool moves_pixels() const override { return true; }
  Shape output_shape(const Shape& images) const override;
  DType output_dtype(DType input) const override { return is_floating(input) ? dtype() : input; }
  Tensor resized(const Tensor& images, const std::string& interpolation) const;
};

// Options of CenterCrop.
struct CenterCropOptions {
  int64_t height = 0;                         // required; of the result
  int64_t width = 0;                          // required; of the result
  std::string data_format = "channels_last";  // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("height", self.height);
    field("width", self.width);
  }
};

// Cuts the center out of images (keras.layers.CenterCrop). Output is [batch, height, width,
// channels] of the options' size and the layer's dtype. An image that is smaller in one direction
// is cropped to the ratio of the result and resized bilinearly.
class CenterCropLayer final : public OptionsLayer<CenterCropOptions, ImageLayer> {
 public:
  static constexpr char kClassName[] = "CenterCrop";
  explicit CenterCropLayer(Options options);

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
  bool moves_pixels() const override { return true; }
  Shape output_shape(const Shape& images) const override;
};

namespace layers {
// Handles to the layers, under Keras's names.
using Resizing = LayerHandle<ResizingLayer>;
using CenterCrop = LayerHandle<CenterCropLayer>;
}  // namespace layers

}  // namespace keel
