#include <keel/layers/image/augmentation_policy.h>

#include <algorithm>
#include <cmath>

#include <keel/autodiff/ops.h>
#include <keel/framework/internal/math.h>
#include <keel/layers/image/internal/image_checks.h>
#include <keel/layers/image/random_affine.h>
#include <keel/layers/image/random_color.h>
#include <keel/layers/image/tone.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

using Steps = std::vector<std::shared_ptr<const ImageLayer>>;

// Fields that the options of both layers share.
template <class Options>
Options policy_options(Options options, const std::string& class_name) {
  options.factor = options.factor.symmetric(0, 1, class_name + ": factor");
  check_name(options.interpolation, {"nearest", "bilinear"}, "interpolation", class_name);
  return options;
}

// Returns the steps in the order of the documentation. They take their numbers from the layer that
// contains them, so that they need no streams or unique names of their own.
template <class Options>
Steps steps_of(const Options& options, bool all) {
  const FactorRange& factor = options.factor;
  const ValueRange& range = options.value_range;
  const std::string& how = options.interpolation;
  const DTypePolicy& dtype = options.dtype;
  const auto color = [&](const FactorRange& of, const char* name) {
    return RandomColorOptions{
        .factor = of, .value_range = range, .seed = 0, .name = name, .dtype = dtype};
  };
  const double bits = std::max(1.0, std::floor(8 * factor.high()));
  Steps out = {
      std::make_shared<RandomShearLayer>(RandomShearOptions{.x_factor = factor,
                                                            .y_factor = factor,
                                                            .interpolation = how,
                                                            .seed = 0,
                                                            .name = "random_shear",
                                                            .dtype = dtype}),
      std::make_shared<RandomTranslationLayer>(
          RandomTranslationOptions{.height_factor = factor,
                                   .width_factor = factor,
                                   .interpolation = how,
                                   .seed = 0,
                                   .name = "random_translation",
                                   .dtype = dtype}),
      std::make_shared<RandomRotationLayer>(RandomRotationOptions{.factor = factor,
                                                                  .interpolation = how,
                                                                  .seed = 0,
                                                                  .name = "random_rotation",
                                                                  .dtype = dtype}),
      std::make_shared<RandomPosterizationLayer>(color(bits, "random_posterization")),
      std::make_shared<SolarizationLayer>(SolarizationOptions{.addition_factor = factor,
                                                              .threshold_factor = factor,
                                                              .value_range = range,
                                                              .seed = 0,
                                                              .name = "solarization",
                                                              .dtype = dtype}),
      std::make_shared<AutoContrastLayer>(
          AutoContrastOptions{.value_range = range, .name = "auto_contrast", .dtype = dtype}),
      std::make_shared<EqualizationLayer>(
          EqualizationOptions{.value_range = range, .name = "equalization", .dtype = dtype})};
  if (!all) return out;
  out.push_back(std::make_shared<RandomBrightnessLayer>(color(factor, "random_brightness")));
  out.push_back(
      std::make_shared<RandomColorDegenerationLayer>(color(factor, "random_color_degeneration")));
  out.push_back(std::make_shared<RandomContrastLayer>(color(factor, "random_contrast")));
  out.push_back(std::make_shared<RandomSharpnessLayer>(color(factor, "random_sharpness")));
  return out;
}

// Draws one of n indices.
int index_of(const ImageRandom& random, int64_t draw, size_t n) {
  return static_cast<int>(random.uniform(draw, 0) * static_cast<double>(n));
}

void check_count(int64_t count, int64_t least, const std::string& option,
                 const std::string& caller) {
  if (count >= least && count <= 16) return;
  throw ValueError(caller, ": ", option, " must be in [", least, ", 16], received ", count);
}

// Parts of the random numbers: the choices of steps, and the numbers of each chain or step.
constexpr int kChoices = 0, kFirstChain = 1, kFirstStep = 1;

}  // namespace

// ---- AugMix.

AugMixLayer::AugMixLayer(Options options)
    : OptionsLayer(kClassName, policy_options(std::move(options), kClassName)),
      steps_(steps_of(options_, options_.all_ops)) {
  check_count(options_.num_chains, 1, "num_chains", caller());
  check_count(options_.chain_depth, 0, "chain_depth", caller());
  if (!(options_.alpha > 0)) {
    throw ValueError(caller(), ": alpha must be positive, received ", options_.alpha);
  }
}

Tensor AugMixLayer::mixed_chains(const Tensor& images, const ImageRandom& random,
                                 bool masks) const {
  const ImageRandom choices = random.part(kChoices);
  const int64_t chains = options_.num_chains;
  // Numbers of the Dirichlet distribution are proportional to those of gamma distributions.
  std::vector<double> weights;
  double total = 0;
  for (int64_t chain = 0; chain < chains; ++chain) {
    weights.push_back(math::exp(choices.log_gamma(chain, 1, options_.alpha)));
    total += weights.back();
  }
  const double of_images = choices.beta(0, 2, options_.alpha);
  Tensor out = images * of_images;
  for (int64_t chain = 0; chain < chains; ++chain) {
    const ImageRandom of_chain = random.part(kFirstChain + static_cast<int>(chain));
    Tensor x = images;
    for (int64_t depth = 0; depth < options_.chain_depth; ++depth) {
      // The last index stands for no step.
      const int step = index_of(choices, chain * 16 + depth, steps_.size() + 1);
      if (step == std::ssize(steps_)) continue;
      const ImageRandom of_step = of_chain.part(static_cast<int>(depth));
      x = masks ? masks_of(*steps_[step], x, of_step) : images_of(*steps_[step], x, of_step);
    }
    const double share = total > 0 ? weights[chain] / total : 1 / static_cast<double>(chains);
    out = out + x * ((1 - of_images) * share);
  }
  return out;
}

Tensor AugMixLayer::transform_images(const Tensor& images, const ImageRandom& random) const {
  return ops::clip_by_value(mixed_chains(images, random, false), options_.value_range.low,
                            options_.value_range.high);
}

Tensor AugMixLayer::transform_masks(const Tensor& masks, const ImageRandom& random) const {
  return mixed_chains(masks, random, true);
}

// ---- RandAugment.

RandAugmentLayer::RandAugmentLayer(Options options)
    : OptionsLayer(kClassName, policy_options(std::move(options), kClassName)),
      steps_(steps_of(options_, true)) {
  check_count(options_.num_ops, 0, "num_ops", caller());
}

std::vector<int> RandAugmentLayer::chosen_steps(const ImageRandom& random) const {
  std::vector<int> out;
  for (int64_t i = 0; i < options_.num_ops; ++i) {
    out.push_back(index_of(random.part(kChoices), i, steps_.size()));
  }
  return out;
}

Tensor RandAugmentLayer::transform_images(const Tensor& images, const ImageRandom& random) const {
  Tensor out = images;
  for (const int step : chosen_steps(random)) {
    out = images_of(*steps_[step], out, random.part(kFirstStep + step));
  }
  return out;
}

Tensor RandAugmentLayer::transform_masks(const Tensor& masks, const ImageRandom& random) const {
  Tensor out = masks;
  for (const int step : chosen_steps(random)) {
    out = masks_of(*steps_[step], out, random.part(kFirstStep + step));
  }
  return out;
}

#define REGISTER(name)                                                     \
  KEEL_REGISTER(Layer, name, .package = "keras", .call = "data, training", \
                .ignored_keys = "bounding_box_format=null")
REGISTER(AugMixLayer)
REGISTER(RandAugmentLayer)
#undef REGISTER

}  // namespace keel
