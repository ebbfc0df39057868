// Random sequences of augmentations: AugMix and RandAugment. Input is described in
// layers/image/image_layer.h; it has three channels. Output has the same shape. Masks move with the
// images; labels do not change. The steps are RandomShear, RandomTranslation, RandomRotation,
// RandomPosterization (to at most 8 times the upper end of `factor`, but at least one bit),
// Solarization, AutoContrast, Equalization, RandomBrightness, RandomColorDegeneration,
// RandomContrast and RandomSharpness, with `factor` as the range of their factors. They throw
// ValueError for options outside the stated range and for an unknown data_format, and
// NotImplementedError for bounding boxes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/image/image_layer.h>

namespace keel {

// Options of AugMix.
struct AugMixOptions {
  ValueRange value_range = {0, 255};          // of the pixels
  int64_t num_chains = 3;                     // sequences of steps, in [1, 16]
  int64_t chain_depth = 3;                    // steps of a sequence, in [0, 16]
  FactorRange factor = 0.3;                   // strength of the steps, in [0, 1]; x means [0, x]
  double alpha = 1.0;                         // of the distributions of the weights, > 0
  bool all_ops = true;                        // false: leave out the last four steps
  std::string interpolation = "bilinear";     // or "nearest"
  std::optional<int64_t> seed = {};           // unset: the next stream of set_random_seed
  std::string data_format = "channels_last";  // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("value_range", self.value_range);
    field("num_chains", self.num_chains);
    field("chain_depth", self.chain_depth);
    field("factor", self.factor);
    field("alpha", self.alpha);
    field("all_ops", self.all_ops);
    field("interpolation", self.interpolation);
    field("seed", self.seed);
  }
};

// Mixes images with a weighted mean of the results of several random sequences of steps
// (keras.layers.AugMix; Hendrycks et al. 2020). The steps of each sequence, of which some are none,
// are drawn for the whole batch, their factors for each image. The weights of the sequences are
// drawn from a Dirichlet distribution with parameter alpha, that of the images from Beta(alpha,
// alpha). Results are clipped to value_range.
class AugMixLayer final : public OptionsLayer<AugMixOptions, AugmentationLayer> {
 public:
  static constexpr char kClassName[] = "AugMix";
  explicit AugMixLayer(Options options);

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
  Tensor transform_masks(const Tensor& masks, const ImageRandom& random) const override;
  bool moves_pixels() const override { return true; }
  Tensor mixed_chains(const Tensor& images, const ImageRandom& random, bool masks) const;

  const std::vector<std::shared_ptr<const ImageLayer>> steps_;
};

// Options of RandAugment.
struct RandAugmentOptions {
  ValueRange value_range = {0, 255};          // of the pixels
  int64_t num_ops = 2;                        // number of steps, in [0, 16]
  FactorRange factor = 0.5;                   // strength of the steps, in [0, 1]; x means [0, x]
  std::string interpolation = "bilinear";     // or "nearest"
  std::optional<int64_t> seed = {};           // unset: the next stream of set_random_seed
  std::string data_format = "channels_last";  // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("value_range", self.value_range);
    field("num_ops", self.num_ops);
    field("factor", self.factor);
    field("interpolation", self.interpolation);
    field("seed", self.seed);
  }
};

// Applies random steps one after another (keras.layers.RandAugment; Cubuk et al. 2020). The steps
// are drawn for the whole batch, their factors for each image. A step that is drawn again uses the
// same factors.
class RandAugmentLayer final : public OptionsLayer<RandAugmentOptions, AugmentationLayer> {
 public:
  static constexpr char kClassName[] = "RandAugment";
  explicit RandAugmentLayer(Options options);

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
  Tensor transform_masks(const Tensor& masks, const ImageRandom& random) const override;
  bool moves_pixels() const override { return true; }
  std::vector<int> chosen_steps(const ImageRandom& random) const;

  const std::vector<std::shared_ptr<const ImageLayer>> steps_;
};

namespace layers {
// Handles to the layers, under Keras's names.
using AugMix = LayerHandle<AugMixLayer>;
using RandAugment = LayerHandle<RandAugmentLayer>;
}  // namespace layers

}  // namespace keel
