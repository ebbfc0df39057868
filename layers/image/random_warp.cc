#include <keel/layers/image/random_warp.h>

#include <algorithm>

#include <keel/autodiff/keras_ops/image.h>
#include <keel/autodiff/keras_ops/internal/resample.h>
#include <keel/autodiff/ops.h>
#include <keel/layers/image/internal/image_checks.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

RandomPerspectiveOptions warp_options(RandomPerspectiveOptions options) {
  options.factor = options.factor.symmetric(0, 1, "RandomPerspective: factor");
  return options;
}
RandomElasticTransformOptions warp_options(RandomElasticTransformOptions options) {
  options.factor = options.factor.symmetric(0, 1, "RandomElasticTransform: factor");
  options.scale = options.scale.symmetric(0, 1, "RandomElasticTransform: scale");
  return options;
}
RandomGaussianBlurOptions warp_options(RandomGaussianBlurOptions options) {
  options.factor = options.factor.symmetric(0, 1, "RandomGaussianBlur: factor");
  options.sigma = options.sigma.symmetric(0, 1, "RandomGaussianBlur: sigma");
  return options;
}

// The draws of numbers for the whole batch come from this part, image 0.
constexpr int kOfBatch = 0;

}  // namespace

// ---- RandomPerspective.

RandomPerspectiveLayer::RandomPerspectiveLayer(Options options)
    : OptionsLayer(kClassName, warp_options(std::move(options))) {
  if (!(options_.scale >= 0 && options_.scale <= 1)) {
    throw ValueError(caller(), ": scale must be in [0, 1], received ", options_.scale);
  }
  check_name(options_.interpolation, {"nearest", "bilinear"}, "interpolation", caller());
}

Tensor RandomPerspectiveLayer::transform_images(const Tensor& images,
                                                const ImageRandom& random) const {
  if (images.size() == 0) return images;
  const int64_t batch = images.dim(0);
  const double bottom = static_cast<double>(images.dim(1) - 1),
               right = static_cast<double>(images.dim(2) - 1);
  const double corners[] = {0, 0, right, 0, 0, bottom, right, bottom};
  std::vector<double> start, end;
  for (int64_t i = 0; i < batch; ++i) {
    for (int k = 0; k < 8; ++k) {
      start.push_back(corners[k]);
      end.push_back(corners[k] *
                    (1 + random.uniform(i, 2 + k, {-options_.scale / 2, options_.scale / 2})));
    }
  }
  const Tensor moved = keras_ops::image::perspective_transform(
      images, Tensor::from(start, {batch, 4, 2}), Tensor::from(end, {batch, 4, 2}),
      options_.interpolation, options_.fill_value);
  return chosen(random.choices(batch, 0, options_.factor), moved, images);
}

// ---- RandomElasticTransform.

RandomElasticTransformLayer::RandomElasticTransformLayer(Options options)
    : OptionsLayer(kClassName, warp_options(std::move(options))) {
  check_name(options_.fill_mode, {"constant", "nearest", "wrap", "mirror", "reflect"}, "fill_mode",
             caller());
  check_name(options_.interpolation, {"nearest", "bilinear"}, "interpolation", caller());
}

Tensor RandomElasticTransformLayer::distorted(const Tensor& images, const ImageRandom& random,
                                              const std::string& interpolation) const {
  const auto [shorter, longer] = std::minmax({images.dim(1), images.dim(2)});
  const double scale = random.part(kOfBatch).uniform(0, 0, options_.scale);
  const Shape plane = images.shape().with(3, 1);
  const Tensor moved = keras_ops::internal::elastically_moved(
      images, random.normal(8, plane, dtype()), random.normal(9, plane, dtype()),
      0.1 * scale * static_cast<double>(longer), 0.05 * scale * static_cast<double>(shorter),
      {interpolation, options_.fill_mode, options_.fill_value});
  return chosen(random.choices(images.dim(0), 0, options_.factor), moved, images);
}

Tensor RandomElasticTransformLayer::transform_images(const Tensor& images,
                                                     const ImageRandom& random) const {
  if (images.size() == 0) return images;
  return ops::clip_by_value(distorted(images, random, options_.interpolation),
                            options_.value_range.low, options_.value_range.high);
}

Tensor RandomElasticTransformLayer::transform_masks(const Tensor& masks,
                                                    const ImageRandom& random) const {
  return masks.size() == 0 ? masks : distorted(masks, random, "nearest");
}

// ---- RandomGaussianBlur.

RandomGaussianBlurLayer::RandomGaussianBlurLayer(Options options)
    : OptionsLayer(kClassName, warp_options(std::move(options))) {
  for (const int64_t size : options_.kernel_size.values()) {
    if (size < 1 || size % 2 == 0) {
      throw ValueError(caller(), ": kernel_size must be odd and positive, received ", size);
    }
  }
}

Tensor RandomGaussianBlurLayer::transform_images(const Tensor& images,
                                                 const ImageRandom& random) const {
  if (images.size() == 0) return images;
  // Standard deviations must not be 0.
  const auto sigma = [&](int k) {
    return random.part(kOfBatch).uniform(0, k, options_.sigma) + 1e-6;
  };
  const Tensor blurred = keras_ops::image::gaussian_blur(
      images, {options_.kernel_size[0], options_.kernel_size[1]}, {sigma(0), sigma(1)});
  return ops::clip_by_value(
      chosen(random.choices(images.dim(0), 0, options_.factor), blurred, images),
      options_.value_range.low, options_.value_range.high);
}

#define REGISTER(name)                                                     \
  KEEL_REGISTER(Layer, name, .package = "keras", .call = "data, training", \
                .ignored_keys = "bounding_box_format=null")
REGISTER(RandomPerspectiveLayer)
REGISTER(RandomElasticTransformLayer)
REGISTER(RandomGaussianBlurLayer)
#undef REGISTER

}  // namespace keel
