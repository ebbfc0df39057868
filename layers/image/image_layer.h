// Base classes of layers that transform images: ImageLayer, and AugmentationLayer for random
// transformations.
//
// Input is a tensor of images [batch, height, width, channels], [batch, channels, height, width] if
// data_format is "channels_first", or of one image without the batch. It may also be a dict with
// such a tensor under the key "images". Of the other keys, a layer changes "labels",
// "segmentation_masks" (images of class numbers) and "bounding_boxes" if its transformation affects
// them, and passes all others through. Images of any numeric dtype are converted to the dtype of
// the layer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <keel/layers/image/factor_range.h>
#include <keel/layers/layer.h>
#include <keel/layers/layer_types.h>

namespace keel {

// The random numbers of one call of an augmentation. A number depends only on the seed, the number
// of earlier calls, the replica, the image and the index of the draw. Asking twice for the same
// number returns it twice, so that the labels and masks of an image change as the image does.
class ImageRandom {
 public:
  ImageRandom() = default;  // for transformations that draw nothing
  // Draws the numbers of a call.
  explicit ImageRandom(const RandomNumbers& numbers)
      : stream_(numbers.stream), first_(numbers.first / 4) {}

  // Return draw `k`, in [0, 16), of an image: a number from [0, 1), or from a range.
  double uniform(int64_t image, int k) const;
  double uniform(int64_t image, int k, const FactorRange& range) const;
  // Returns uniform() of each of `batch` images.
  std::vector<double> uniforms(int64_t batch, int k, const FactorRange& range) const;
  // Returns, for each image, true with a probability that is first drawn from `probability`. Uses
  // the draws k and k + 1.
  std::vector<bool> choices(int64_t batch, int k, const FactorRange& probability) const;
  // Returns a number of the distribution Beta(alpha, alpha).
  double beta(int64_t image, int k, double alpha) const;
  // Returns the logarithm of a number of the distribution Gamma(alpha, 1).
  double log_gamma(int64_t image, int k, double alpha) const;
  // Returns a permutation of 0 ... n - 1.
  std::vector<int64_t> permutation(int k, int64_t n) const;
  // Fills a tensor [batch, ...] with numbers of the standard normal distribution.
  Tensor normal(int k, const Shape& shape, DType dtype) const;
  // Returns independent numbers for part `i`, in [0, 64), of a transformation. At most three parts
  // may be nested.
  ImageRandom part(int i) const;

 private:
  RandomStream stream_;
  uint64_t first_ = 0;  // position of the first words
  int depth_ = 0;       // of parts
};

// Base class of layers that transform images. See the top of this file.
class ImageLayer : public Layer {
 protected:
  // `options` must have a data_format in addition to name, trainable and dtype. Throws ValueError
  // for an unknown data_format.
  template <class Options>
  ImageLayer(const char* class_name, Options& options)
      : Layer(class_name, options), channels_last_(is_last(options.data_format)) {}

  // Transforms images [batch, height, width, channels] of the layer's dtype.
  virtual Tensor transform_images(const Tensor& images, const ImageRandom& random) const = 0;
  // Transforms the labels of images of this shape. By default, they are returned unchanged.
  virtual Tensor transform_labels(const Tensor& labels, const Shape& images,
                                  const ImageRandom& random) const;
  // Transforms masks [batch, height, width, channels], which have been converted to the layer's
  // dtype and are converted back afterwards. By default, they are returned unchanged.
  virtual Tensor transform_masks(const Tensor& masks, const ImageRandom& random) const;
  // Transforms bounding boxes. By default, they are returned unchanged if `moves_pixels` is false;
  // otherwise the default throws NotImplementedError.
  virtual Tensors transform_boxes(const Tensors& boxes) const;
  // Returns true if the layer moves pixels, so that masks and boxes change.
  virtual bool moves_pixels() const { return false; }
  // Returns the shape of the result for images [batch, height, width, channels], of which
  // dimensions may be unknown. By default it is the same.
  virtual Shape output_shape(const Shape& images) const { return images; }
  // Returns the dtype of the result for images of a dtype. By default, it is that of the layer.
  virtual DType output_dtype(DType) const { return dtype(); }
  // Returns whether results of an integer dtype are rounded; otherwise they are cut.
  virtual bool rounds_integers() const { return true; }
  // Returns the random numbers of a call, or nothing if this call passes its input through. The
  // default returns numbers that must not be used.
  virtual std::optional<ImageRandom> draw(const CallContext& context) const;

  // Returns transform_images() and transform_masks() of another layer, for layers made of others.
  static Tensor images_of(const ImageLayer& layer, const Tensor& images, const ImageRandom& random);
  static Tensor masks_of(const ImageLayer& layer, const Tensor& masks, const ImageRandom& random);
  // Returns the numbers, one for each image, as a tensor [batch, 1, 1, 1] of the layer's dtype.
  Tensor for_each_image(const std::vector<double>& numbers) const;
  // Returns `changed` for chosen images and `images` for the others.
  static Tensor chosen(const std::vector<bool>& choices, const Tensor& changed,
                       const Tensor& images);
  std::string caller() const { return class_name() + " " + name(); }  // begins error messages
  bool channels_last() const { return channels_last_; }               // the data format

 private:
  bool is_last(const std::string& data_format) const;
  Tensors call(const Tensors& inputs, const CallContext& context) final;
  template <class Fn>
  Tensor on_batch(const Tensor& x, const Fn& fn) const;
  Tensor image_result(const Tensor& images, const std::optional<ImageRandom>& random) const;
  Tensor mask_result(const Tensor& masks, const ImageRandom& random) const;

  const bool channels_last_;
};

// Base class of random augmentations. Outside of training, images are only converted to the layer's
// dtype. In training, the result depends only on the seed, the number of earlier calls in training,
// the replica and the position of the image in the batch, and not on the number of threads. The
// number of calls is the variable `seed_generator_state` (int64, shape {1}), so checkpoints restore
// it.
class AugmentationLayer : public ImageLayer {
 protected:
  // `options` must have a data_format and a seed in addition to name, trainable and dtype.
  template <class Options>
  AugmentationLayer(const char* class_name, Options& options)
      : ImageLayer(class_name, options), random_(options.seed) {}

 private:
  void build_weights(const Specs&) final { add_state(random_.make_state()); }
  std::optional<ImageRandom> draw(const CallContext& context) const final;

  SeedGenerator random_;
};

}  // namespace keel
