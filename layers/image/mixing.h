// Random augmentations that mix the images of a batch, and their labels: MixUp and CutMix. Input is
// a dict of a batch of "images" and of "labels" [batch, ...], which must be floating-point, or
// images alone (layers/image/image_layer.h). Results have the same shapes; single images are
// returned unchanged. The layers throw ValueError for options outside the stated range and for an
// unknown data_format, TypeError for labels that are not floating-point, and NotImplementedError
// for bounding boxes.
#pragma once

#include <optional>
#include <string>

#include <keel/layers/image/image_layer.h>

namespace keel {

// Options of MixUp.
struct MixUpOptions {
  double alpha = 0.2;                         // > 0; a smaller number mixes less
  std::string data_format = "channels_last";  // or "channels_first"
  std::optional<int64_t> seed = {};           // unset: the next stream of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("alpha", self.alpha);
    field("seed", self.seed);
  }
};

// Returns w x + (1 - w) y for images x and labels, where y is a permutation of the batch and w is a
// number from the distribution Beta(alpha, alpha), both drawn for the whole batch
// (keras.layers.MixUp; Zhang et al. 2018). Masks are mixed likewise.
class MixUpLayer final : public OptionsLayer<MixUpOptions, AugmentationLayer> {
 public:
  static constexpr char kClassName[] = "MixUp";
  explicit MixUpLayer(Options options);

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
  Tensor transform_labels(const Tensor& labels, const Shape& images,
                          const ImageRandom& random) const override;
  bool moves_pixels() const override { return true; }
};

// Options of CutMix.
struct CutMixOptions {
  FactorRange factor = 1.0;                   // range of alpha, in [0, 1]; a number x means [0, x]
  std::optional<int64_t> seed = {};           // unset: the next stream of set_random_seed
  std::string data_format = "channels_last";  // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("factor", self.factor);
    field("seed", self.seed);
  }
};

// Replaces a rectangle of each image by that of another one, and mixes the labels by area
// (keras.layers.CutMix; Yun et al. 2019). The others are a permutation of the batch. The rectangle
// of an image has a random place and the area 1 - w, for w from the distribution Beta(alpha,
// alpha). Alpha is a number from `factor`, drawn for the whole batch. Masks change as images do.
class CutMixLayer final : public OptionsLayer<CutMixOptions, AugmentationLayer> {
 public:
  static constexpr char kClassName[] = "CutMix";
  explicit CutMixLayer(Options options);

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
  Tensor transform_labels(const Tensor& labels, const Shape& images,
                          const ImageRandom& random) const override;
  bool moves_pixels() const override { return true; }
};

namespace layers {
// Handles to the layers, under Keras's names.
using MixUp = LayerHandle<MixUpLayer>;
using CutMix = LayerHandle<CutMixLayer>;
}  // namespace layers

}  // namespace keel
