#include <keel/layers/image/random_color.h>

#include <cmath>

#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/keras_ops/image.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/spatial_ops.h>
#include <keel/layers/image/internal/value_scale.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

namespace image = keras_ops::image;

// Returns the options with a pair of factors.
RandomColorOptions with_pair(RandomColorOptions options, const std::string& class_name) {
  double lowest = 0, highest = 1;
  if (class_name == "RandomBrightness" || class_name == "RandomSaturation" ||
      class_name == "RandomColorDegeneration") {
    lowest = -1;
  } else if (class_name == "RandomPosterization") {
    lowest = 1;
    highest = 8;
    // Other numbers of bits have no step between levels.
    if (options.factor.is_pair()) options.factor.within(1, 8, class_name + ": factor");
  } else if (class_name == "RandomInvert" && !options.factor.is_set()) {
    options.factor = 1.0;
  }
  options.factor = options.factor.symmetric(lowest, highest, class_name + ": factor");
  return options;
}

// Returns images of hue, saturation and value with one of the channels replaced.
Tensor with_channel(const Tensor& hsv, int channel, const Tensor& values) {
  std::vector<Tensor> channels = ops::split(hsv, 3, 3);
  channels[channel] = values;
  return ops::concat(channels, 3);
}

Tensor smoothed(const Tensor& images) {
  const int64_t channels = images.dim(3);
  std::vector<double> kernel(9 * channels, 1.0 / 13);
  std::fill_n(kernel.begin() + 4 * channels, channels, 5.0 / 13);
  const ops::SpatialWindow window = {.size = 3, .before = 1, .after = 1};
  return ops::depthwise_convolution(
      images, as_dtype(Tensor::from(kernel, {3, 3, channels, 1}), images.dtype()),
      {window, window});
}

}  // namespace

template <ClassName kName>
RandomColorLayer<kName>::RandomColorLayer(Options options)
    : OptionsLayer(kClassName, with_pair(std::move(options), kClassName)) {}

template <ClassName kName>
Tensor RandomColorLayer<kName>::clipped(const Tensor& images) const {
  return ops::clip_by_value(images, options_.value_range.low, options_.value_range.high);
}

template <>
Tensor RandomBrightnessLayer::transform_images(const Tensor& images,
                                               const ImageRandom& random) const {
  std::vector<double> shifts = random.uniforms(images.dim(0), 0, options_.factor);
  for (double& shift : shifts) shift *= options_.value_range.high - options_.value_range.low;
  return clipped(images + for_each_image(shifts));
}

template <>
Tensor RandomContrastLayer::transform_images(const Tensor& images,
                                             const ImageRandom& random) const {
  const FactorRange range = {1 - options_.factor.low(), 1 + options_.factor.high()};
  const Tensor factors = for_each_image(random.uniforms(images.dim(0), 0, range));
  const Tensor mean = ops::mean(images, {1, 2}, true);
  return clipped((images - mean) * factors + mean);
}

template <>
Tensor RandomHueLayer::transform_images(const Tensor& images, const ImageRandom& random) const {
  std::vector<double> turns = random.uniforms(images.dim(0), 0, options_.factor);
  for (int64_t i = 0; i < images.dim(0); ++i) {
    turns[i] *= random.uniform(i, 1) > 0.5 ? -0.5 : 0.5;
  }
  const ValueRange unit = {0, 1};
  const Tensor hsv = image::rgb_to_hsv(rescaled(images, options_.value_range, unit));
  const Tensor turned = ops::slice(hsv, 3, 0, 1) + for_each_image(turns);
  // Angles beyond a full turn continue at 0. Hues differ from an integer by less than 1.5.
  const Tensor zero = ops::zeros_like(turned), one = ops::ones_like(turned);
  const Tensor below = ops::where(ops::greater(turned, one), turned - 1.0, turned);
  const Tensor hue = ops::where(ops::less(below, zero), below + 1.0, below);
  const Tensor rgb = ops::clip_by_value(image::hsv_to_rgb(with_channel(hsv, 0, hue)), 0, 1);
  return rescaled(rgb, unit, options_.value_range);
}

template <>
Tensor RandomInvertLayer::transform_images(const Tensor& images, const ImageRandom& random) const {
  return chosen(random.choices(images.dim(0), 0, options_.factor),
                -images + options_.value_range.high, images);
}

template <>
Tensor RandomSaturationLayer::transform_images(const Tensor& images,
                                               const ImageRandom& random) const {
  std::vector<double> factors = random.uniforms(images.dim(0), 0, options_.factor);
  for (double& f : factors) f = f / (1 - f + 1e-7);
  const Tensor hsv = image::rgb_to_hsv(images);
  const Tensor saturation = ops::slice(hsv, 3, 1, 1) * for_each_image(factors);
  return image::hsv_to_rgb(with_channel(hsv, 1, clipped(saturation)));
}

template <>
Tensor RandomSharpnessLayer::transform_images(const Tensor& images,
                                              const ImageRandom& random) const {
  std::vector<double> blurs = random.uniforms(images.dim(0), 0, options_.factor);
  for (double& blur : blurs) blur = 1 - 2 * blur;
  return clipped(images + for_each_image(blurs) * (smoothed(images) - images));
}

template <>
Tensor RandomPosterizationLayer::transform_images(const Tensor& images,
                                                  const ImageRandom& random) const {
  std::vector<double> steps;
  for (int64_t i = 0; i < images.dim(0); ++i) {
    steps.push_back(std::exp2(8 - std::floor(random.uniform(i, 0, options_.factor))));
  }
  const Tensor step = for_each_image(steps);
  const ValueRange bytes = {0, 255};
  const Tensor values =
      ops::floor(ops::clip_by_value(rescaled(images, options_.value_range, bytes), 0, 255));
  return rescaled(ops::floor(values / step) * step, bytes, options_.value_range);
}

template <>
Tensor RandomColorDegenerationLayer::transform_images(const Tensor& images,
                                                      const ImageRandom& random) const {
  const Tensor factors = for_each_image(random.uniforms(images.dim(0), 0, options_.factor));
  return clipped(images + factors * (image::rgb_to_grayscale(images) - images));
}

template class RandomColorLayer<"RandomBrightness">;
template class RandomColorLayer<"RandomContrast">;
template class RandomColorLayer<"RandomHue">;
template class RandomColorLayer<"RandomInvert">;
template class RandomColorLayer<"RandomSaturation">;
template class RandomColorLayer<"RandomSharpness">;
template class RandomColorLayer<"RandomPosterization">;
template class RandomColorLayer<"RandomColorDegeneration">;

// ---- RandomGrayscale.

RandomGrayscaleLayer::RandomGrayscaleLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  if (!(options_.factor >= 0 && options_.factor <= 1)) {
    throw ValueError(caller(), ": factor must be in [0, 1], received ", options_.factor);
  }
}

Tensor RandomGrayscaleLayer::transform_images(const Tensor& images,
                                              const ImageRandom& random) const {
  const FactorRange probability = {options_.factor, options_.factor};
  return chosen(random.choices(images.dim(0), 0, probability), image::rgb_to_grayscale(images),
                images);
}

// Keras's class has no seed.
Config RandomGrayscaleLayer::get_config() const {
  Config config = to_config(options_);
  if (!options_.seed) config.erase("seed");
  return config;
}

// ---- RandomColorJitter.

RandomColorJitterLayer::RandomColorJitterLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  const auto add = [&]<class T>(const T*, const std::optional<FactorRange>& factor) {
    if (!factor) return;
    // The parts draw their numbers from this layer's seed.
    parts_.push_back(std::make_shared<T>(RandomColorOptions{.factor = *factor,
                                                            .value_range = options_.value_range,
                                                            .seed = 0,
                                                            .name = T::kClassName,
                                                            .dtype = options_.dtype}));
  };
  add(static_cast<RandomBrightnessLayer*>(nullptr), options_.brightness_factor);
  add(static_cast<RandomContrastLayer*>(nullptr), options_.contrast_factor);
  add(static_cast<RandomSaturationLayer*>(nullptr), options_.saturation_factor);
  add(static_cast<RandomHueLayer*>(nullptr), options_.hue_factor);
}

Tensor RandomColorJitterLayer::transform_images(const Tensor& images,
                                                const ImageRandom& random) const {
  Tensor out = images;
  for (size_t i = 0; i < parts_.size(); ++i) {
    out = images_of(*parts_[i], out, random.part(static_cast<int>(i)));
  }
  return out;
}

#define REGISTER(name)                                                     \
  KEEL_REGISTER(Layer, name, .package = "keras", .call = "data, training", \
                .ignored_keys = "bounding_box_format=null")
REGISTER(RandomBrightnessLayer)
REGISTER(RandomContrastLayer)
REGISTER(RandomHueLayer)
REGISTER(RandomInvertLayer)
REGISTER(RandomSaturationLayer)
REGISTER(RandomSharpnessLayer)
REGISTER(RandomPosterizationLayer)
REGISTER(RandomColorDegenerationLayer)
REGISTER(RandomGrayscaleLayer)
REGISTER(RandomColorJitterLayer)
#undef REGISTER

}  // namespace keel
