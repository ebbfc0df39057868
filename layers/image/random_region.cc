#include <keel/layers/image/random_region.h>

#include <algorithm>
#include <cmath>

#include <keel/autodiff/keras_ops/image.h>
#include <keel/autodiff/keras_ops/internal/resample.h>
#include <keel/autodiff/ops.h>
#include <keel/layers/image/internal/image_checks.h>
#include <keel/layers/image/internal/rectangle.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {

// ---- RandomFlip.

RandomFlipLayer::RandomFlipLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {
  check_name(options_.mode, {"horizontal", "vertical", "horizontal_and_vertical"}, "mode",
             caller());
}

Tensor RandomFlipLayer::transform_images(const Tensor& images, const ImageRandom& random) const {
  const std::vector<bool> flipped = random.choices(images.dim(0), 0, {0.5, 0.5});
  const bool rows = options_.mode != "horizontal", columns = options_.mode != "vertical";
  const int64_t bottom = images.dim(1) - 1, right = images.dim(2) - 1;
  const auto map = [&](int64_t image, int64_t x, int64_t y) {
    if (flipped[image] && columns) x = right - x;
    if (flipped[image] && rows) y = bottom - y;
    return std::pair(static_cast<double>(x), static_cast<double>(y));
  };
  return keras_ops::internal::pixels_moved(images, map, {.interpolation = "nearest"});
}

// ---- RandomCrop.

RandomCropLayer::RandomCropLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {
  check_size(options_.height, options_.width, caller());
}

Shape RandomCropLayer::output_shape(const Shape& images) const {
  return images.with(1, options_.height).with(2, options_.width);
}

Tensor RandomCropLayer::cropped(const Tensor& images, const ImageRandom& random,
                                const std::string& interpolation) const {
  const int64_t h = images.dim(1), w = images.dim(2);
  const int64_t height = options_.height, width = options_.width;
  int64_t top = 0, left = 0;
  if (h > height && w > width) {
    // The place of the first image is that of all.
    const auto place = [&](int k, int64_t places) {
      return static_cast<int64_t>(random.uniform(0, k) * static_cast<double>(places));
    };
    top = place(0, h - height + 1);
    left = place(1, w - width + 1);
  } else {
    const int64_t rows = std::max<int64_t>(std::min(h, w * height / width), 1);
    const int64_t columns = std::max<int64_t>(std::min(w, h * width / height), 1);
    top = (h - rows) / 2;
    left = (w - columns) / 2;
  }
  const Tensor cut = ops::slice(ops::slice(images, 1, top, std::min(height, h - top)), 2, left,
                                std::min(width, w - left));
  if (cut.dim(1) == height && cut.dim(2) == width) return cut;
  return keras_ops::image::resize(cut, {height, width}, {.interpolation = interpolation});
}

Tensor RandomCropLayer::transform_images(const Tensor& images, const ImageRandom& random) const {
  return cropped(images, random, "bilinear");
}

// Numbers of classes must not be mixed.
Tensor RandomCropLayer::transform_masks(const Tensor& masks, const ImageRandom& random) const {
  return cropped(masks, random, "nearest");
}

// ---- RandomErasing.

namespace {

RandomErasingOptions with_erasing_pairs(RandomErasingOptions options) {
  options.factor = options.factor.symmetric(0, 1, "RandomErasing: factor");
  options.scale = options.scale.symmetric(0, 1, "RandomErasing: scale");
  return options;
}

}  // namespace

RandomErasingLayer::RandomErasingLayer(Options options)
    : OptionsLayer(kClassName, with_erasing_pairs(std::move(options))) {
  if (options_.fill_value && options_.fill_value->is_list() &&
      options_.fill_value->values().size() != 3) {
    throw ValueError(caller(), ": fill_value must be one number or three, received ",
                     options_.fill_value->values().size());
  }
}

Tensor RandomErasingLayer::filling(const Tensor& images, const ImageRandom& random) const {
  const ValueRange& range = options_.value_range;
  const Tensor values = options_.fill_value
                            ? options_.fill_value->tensor(dtype())
                            : random.normal(8, images.shape(), dtype()) * range.high;
  return ops::clip_by_value(values, range.low, range.high);
}

Tensor RandomErasingLayer::transform_images(const Tensor& images, const ImageRandom& random) const {
  std::vector<Rectangle> rectangles;
  const std::vector<bool> erased = random.choices(images.dim(0), 0, options_.factor);
  for (int64_t i = 0; i < images.dim(0); ++i) {
    const double width = std::sqrt(std::max(0.0, random.uniform(i, 2, options_.scale)));
    const double height = std::sqrt(std::max(0.0, random.uniform(i, 3, options_.scale)));
    const Rectangle nothing;
    rectangles.push_back(erased[i] ? random_rectangle(random, i, 4, height, width, images.shape())
                                   : nothing);
  }
  return ops::where(inside_of(rectangles, images.shape()), filling(images, random), images);
}

#define REGISTER(name)                                                     \
  KEEL_REGISTER(Layer, name, .package = "keras", .call = "data, training", \
                .ignored_keys = "bounding_box_format=null")
REGISTER(RandomFlipLayer)
REGISTER(RandomCropLayer)
REGISTER(RandomErasingLayer)
#undef REGISTER

}  // namespace keel
