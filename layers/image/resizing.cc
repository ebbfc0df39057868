#include <keel/layers/image/resizing.h>

#include <keel/autodiff/keras_ops/image.h>
#include <keel/layers/image/internal/image_checks.h>
#include <keel/layers/registry.h>

namespace keel {

ResizingLayer::ResizingLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {
  check_size(options_.height, options_.width, caller());
  check_name(options_.interpolation, {"nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"},
             "interpolation", caller());
  check_name(options_.fill_mode, {"constant"}, "fill_mode", caller());
  if (options_.crop_to_aspect_ratio && options_.pad_to_aspect_ratio) {
    throw ValueError(caller(), ": choose one of crop_to_aspect_ratio and pad_to_aspect_ratio");
  }
}

Tensor ResizingLayer::resized(const Tensor& images, const std::string& interpolation) const {
  return keras_ops::image::resize(images, {options_.height, options_.width},
                                  {.interpolation = interpolation,
                                   .antialias = options_.antialias,
                                   .crop_to_aspect_ratio = options_.crop_to_aspect_ratio,
                                   .pad_to_aspect_ratio = options_.pad_to_aspect_ratio,
                                   .fill_mode = options_.fill_mode,
                                   .fill_value = options_.fill_value});
}

Tensor ResizingLayer::transform_images(const Tensor& images, const ImageRandom&) const {
  return resized(images, options_.interpolation);
}

// Numbers of classes must not be mixed.
Tensor ResizingLayer::transform_masks(const Tensor& masks, const ImageRandom&) const {
  return resized(masks, "nearest");
}

Shape ResizingLayer::output_shape(const Shape& images) const {
  return images.with(1, options_.height).with(2, options_.width);
}

KEEL_REGISTER(Layer, ResizingLayer, .package = "keras", .call = "data, training",
              .ignored_keys = "bounding_box_format=null")

}  // namespace keel
