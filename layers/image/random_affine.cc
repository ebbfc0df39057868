#include <keel/layers/image/random_affine.h>

#include <numbers>

#include <keel/autodiff/keras_ops/image.h>
#include <keel/framework/internal/math.h>
#include <keel/layers/image/internal/image_checks.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

using AffineMap = std::array<double, 8>;

// Returns the options with pairs of factors. Keras's configs of RandomTranslation and RandomZoom
// keep the form that was given.
RandomRotationOptions with_pairs_of(RandomRotationOptions options) {
  options.factor = options.factor.symmetric(-1, 1, "RandomRotation: factor");
  return options;
}
RandomTranslationOptions with_pairs_of(RandomTranslationOptions options) {
  options.height_factor.within(-1, 1, "RandomTranslation: height_factor");
  options.width_factor.within(-1, 1, "RandomTranslation: width_factor");
  return options;
}
RandomZoomOptions with_pairs_of(RandomZoomOptions options) {
  options.height_factor.within(-1, 1, "RandomZoom: height_factor");
  if (options.width_factor) options.width_factor->within(-1, 1, "RandomZoom: width_factor");
  return options;
}
// Keras writes the pair [-x, x] for a number x, but rejects it when it reads the config.
FactorRange shear_factor(const FactorRange& factor, const std::string& argument) {
  if (factor.is_pair() && factor.low() == -factor.high()) {
    return shear_factor(factor.high(), argument);
  }
  factor.within(0, 1, argument);
  return factor;
}
RandomShearOptions with_pairs_of(RandomShearOptions options) {
  options.x_factor = shear_factor(options.x_factor, "RandomShear: x_factor");
  options.y_factor = shear_factor(options.y_factor, "RandomShear: y_factor");
  return options;
}

// Draws number k from a checked range.
double drawn(const ImageRandom& random, int64_t image, int k, const FactorRange& range) {
  return random.uniform(image, k, range.within(-1, 1, "factor"));
}

}  // namespace

template <ClassName kName, class OptionsType>
RandomAffineLayer<kName, OptionsType>::RandomAffineLayer(Options options)
    : Base(kClassName, with_pairs_of(std::move(options))) {
  check_name(options_.fill_mode, {"reflect", "wrap", "constant", "nearest"}, "fill_mode",
             this->caller());
  check_name(options_.interpolation, {"nearest", "bilinear"}, "interpolation", this->caller());
}

template <>
AffineMap RandomRotationLayer::map_of(const ImageRandom& random, int64_t image, double height,
                                      double width) const {
  const double angle = 2 * std::numbers::pi * random.uniform(image, 0, options_.factor);
  const double cos = math::cos(angle), sin = math::sin(angle);
  const double x = (width - 1) / 2, y = (height - 1) / 2;
  return {cos, -sin, x - cos * x + sin * y, sin, cos, y - sin * x - cos * y, 0, 0};
}

template <>
AffineMap RandomTranslationLayer::map_of(const ImageRandom& random, int64_t image, double height,
                                         double width) const {
  const double down = height * drawn(random, image, 0, options_.height_factor);
  const double right = width * drawn(random, image, 1, options_.width_factor);
  return {1, 0, -right, 0, 1, -down, 0, 0};
}

template <>
AffineMap RandomZoomLayer::map_of(const ImageRandom& random, int64_t image, double height,
                                  double width) const {
  const double rows = 1 + drawn(random, image, 0, options_.height_factor);
  const double columns =
      options_.width_factor ? 1 + drawn(random, image, 1, *options_.width_factor) : rows;
  return {columns, 0, (width - 1) / 2 * (1 - columns), 0, rows, (height - 1) / 2 * (1 - rows),
          0,       0};
}

template <>
AffineMap RandomShearLayer::map_of(const ImageRandom& random, int64_t image, double, double) const {
  const double sign = random.uniform(image, 2) > 0.5 ? -1 : 1;
  const double x = sign * drawn(random, image, 0, options_.x_factor);
  const double y = sign * drawn(random, image, 1, options_.y_factor);
  return {1, x, 0, y, 1, 0, 0, 0};
}

template <ClassName kName, class OptionsType>
Tensor RandomAffineLayer<kName, OptionsType>::transform_images(const Tensor& images,
                                                               const ImageRandom& random) const {
  const int64_t batch = images.dim(0);
  if (images.size() == 0) return images;
  std::vector<double> maps;
  for (int64_t i = 0; i < batch; ++i) {
    const AffineMap map =
        map_of(random, i, static_cast<double>(images.dim(1)), static_cast<double>(images.dim(2)));
    maps.insert(maps.end(), map.begin(), map.end());
  }
  return keras_ops::image::affine_transform(images, Tensor::from(maps, {batch, 8}),
                                            options_.interpolation, options_.fill_mode,
                                            options_.fill_value);
}

template class RandomAffineLayer<"RandomRotation", RandomRotationOptions>;
template class RandomAffineLayer<"RandomTranslation", RandomTranslationOptions>;
template class RandomAffineLayer<"RandomZoom", RandomZoomOptions>;
template class RandomAffineLayer<"RandomShear", RandomShearOptions>;

#define REGISTER(name)                                                     \
  KEEL_REGISTER(Layer, name, .package = "keras", .call = "data, training", \
                .ignored_keys = "bounding_box_format=null")
REGISTER(RandomRotationLayer)
REGISTER(RandomTranslationLayer)
REGISTER(RandomZoomLayer)
REGISTER(RandomShearLayer)
#undef REGISTER

}  // namespace keel
