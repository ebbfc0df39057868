#include <keel/autodiff/keras_ops/image.h>
#include <keel/autodiff/ops.h>
#include <keel/layers/image/internal/image_checks.h>
#include <keel/layers/image/resizing.h>
#include <keel/layers/registry.h>

namespace keel {

CenterCropLayer::CenterCropLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {
  check_size(options_.height, options_.width, caller());
}

Tensor CenterCropLayer::transform_images(const Tensor& images, const ImageRandom&) const {
  const int64_t rows = images.dim(1) - options_.height, columns = images.dim(2) - options_.width;
  if (rows >= 0 && columns >= 0) {
    return ops::slice(ops::slice(images, 1, rows / 2, options_.height), 2, columns / 2,
                      options_.width);
  }
  return keras_ops::image::resize(images, {options_.height, options_.width},
                                  {.crop_to_aspect_ratio = true});
}

Shape CenterCropLayer::output_shape(const Shape& images) const {
  return images.with(1, options_.height).with(2, options_.width);
}

KEEL_REGISTER(Layer, CenterCropLayer, .package = "keras", .call = "data, training",
              .ignored_keys = "bounding_box_format=null")

}  // namespace keel
