#include <keel/layers/image/image_layer.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/ops.h>
#include <keel/framework/internal/math.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/internal/data_format.h>

namespace keel {
namespace {

constexpr int kDraws = 16;  // draws of each image in a part

double fraction(uint32_t low, uint32_t high) {
  const uint64_t word = low | uint64_t{high} << 32;
  return static_cast<double>(word >> 11) * 0x1p-53;
}

// The numbers of log_gamma() come from lanes of their own, which begin here.
constexpr int kFirstLane = 64;

}  // namespace

// ---- ImageRandom.

double ImageRandom::uniform(int64_t image, int k) const {
  const auto words = stream_.bits(first_ + static_cast<uint64_t>(image * kDraws + k));
  return fraction(words[0], words[1]);
}

double ImageRandom::uniform(int64_t image, int k, const FactorRange& range) const {
  return range.low() + (range.high() - range.low()) * uniform(image, k);
}

std::vector<double> ImageRandom::uniforms(int64_t batch, int k, const FactorRange& range) const {
  std::vector<double> out;
  for (int64_t image = 0; image < batch; ++image) out.push_back(uniform(image, k, range));
  return out;
}

std::vector<bool> ImageRandom::choices(int64_t batch, int k, const FactorRange& probability) const {
  std::vector<bool> out;
  for (int64_t image = 0; image < batch; ++image) {
    out.push_back(uniform(image, k + 1) < uniform(image, k, probability));
  }
  return out;
}

// Marsaglia and Tsang 2000, "A simple method for generating gamma variables". A number with alpha
// below 1 is one with alpha + 1 times a power of a uniform number; its logarithm does not
// underflow.
double ImageRandom::log_gamma(int64_t image, int k, double alpha) const {
  const ImageRandom lane = part(kFirstLane + k);
  const uint64_t first = lane.first_ + (static_cast<uint64_t>(image) << 16);
  const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (uint64_t attempt = 0;; ++attempt) {
    const auto words = lane.stream_.bits(first + 2 * attempt);
    // Box and Muller's transformation of two uniform numbers, of which the first one is not 0.
    const double radius = std::sqrt(-2 * math::log(1 - fraction(words[0], words[1])));
    const double x = radius * math::cos(2 * std::numbers::pi * fraction(words[2], words[3]));
    const double v = (1 + c * x) * (1 + c * x) * (1 + c * x);
    const auto more = lane.stream_.bits(first + 2 * attempt + 1);
    const double u = 1 - fraction(more[0], more[1]), w = 1 - fraction(more[2], more[3]);
    if (v <= 0 || math::log(u) >= 0.5 * x * x + d - d * v + d * math::log(v)) continue;
    const double log_of_whole = math::log(d * v);
    return alpha < 1 ? log_of_whole + math::log(w) / alpha : log_of_whole;
  }
}

double ImageRandom::beta(int64_t image, int k, double alpha) const {
  return math::sigmoid(log_gamma(image, k, alpha) - log_gamma(image, k + 1, alpha));
}

std::vector<int64_t> ImageRandom::permutation(int k, int64_t n) const {
  const ImageRandom lane = part(kFirstLane + k);
  std::vector<int64_t> out(n);
  // Inside-out Fisher-Yates shuffle.
  for (int64_t i = 0; i < n; ++i) {
    const auto j = static_cast<int64_t>(lane.uniform(i, 0) * static_cast<double>(i + 1));
    out[i] = out[j];
    out[j] = i;
  }
  return out;
}

Tensor ImageRandom::normal(int k, const Shape& shape, DType dtype) const {
  const ImageRandom lane = part(kFirstLane + k);
  Tensor out = Tensor::uninitialized(shape, DType::kFloat32);
  lane.stream_.normal(out.mutable_data<float>(), 4 * first_, 0, 1);
  return as_dtype(out, dtype);
}

ImageRandom ImageRandom::part(int i) const {
  // Calls of the layer use the lanes below 2^32 of the stream. Parts use the bits above them, eight
  // for each level. Deeper levels and greater numbers use lanes that depend on the path.
  ImageRandom out = *this;
  if (depth_ < 4 && i < 255) {
    out.stream_ = stream_.at_lane(static_cast<uint64_t>(i + 1) << (32 + 8 * depth_));
  } else {
    const auto words = stream_.bits(~static_cast<uint64_t>(i));
    out.stream_ = stream_.at_lane(words[0] | uint64_t{words[1]} << 32);
  }
  ++out.depth_;
  return out;
}

// ---- ImageLayer.

bool ImageLayer::is_last(const std::string& data_format) const {
  return is_channels_last(data_format, caller());
}

template <class Fn>
Tensor ImageLayer::on_batch(const Tensor& x, const Fn& fn) const {
  if (x.rank() != 3 && x.rank() != 4) {
    throw ValueError(caller(), ": images must have rank 3 or 4, [batch, height, width, channels] ",
                     "or one image, received shape ", x.shape());
  }
  const bool single = x.rank() == 3;
  Tensor batch = single ? ops::expand_dims(x, 0) : x;
  if (!channels_last_) batch = ops::transpose(batch, {0, 2, 3, 1});
  batch = fn(batch);
  if (!channels_last_) batch = ops::transpose(batch, {0, 3, 1, 2});
  return single ? ops::squeeze(batch, 0) : batch;
}

Tensor ImageLayer::image_result(const Tensor& images,
                                const std::optional<ImageRandom>& random) const {
  const DType result = output_dtype(images.dtype());
  if (images.is_symbolic()) {
    return on_batch(images, [&](const Tensor& x) {
      return Tensor::symbolic({.shape = output_shape(x.shape()), .dtype = result});
    });
  }
  if (!random) return as_dtype(images, result);
  return on_batch(images, [&](const Tensor& x) {
    const Tensor y = transform_images(as_dtype(x, dtype()), *random);
    if (is_floating(result)) return as_dtype(y, result);
    return ops::cast(rounds_integers() ? keras_ops::round(y) : y, result);
  });
}

Tensor ImageLayer::mask_result(const Tensor& masks, const ImageRandom& random) const {
  if (!moves_pixels()) return masks;
  return on_batch(masks, [&](const Tensor& x) {
    if (x.is_symbolic()) {
      return Tensor::symbolic({.shape = output_shape(x.shape()), .dtype = x.dtype()});
    }
    const Tensor y = transform_masks(as_dtype(x, dtype()), random);
    return is_floating(x.dtype()) ? as_dtype(y, x.dtype())
                                  : ops::cast(keras_ops::round(y), x.dtype());
  });
}

Tensors ImageLayer::call(const Tensors& inputs, const CallContext& context) {
  std::optional<ImageRandom> random;
  const bool symbolic = any_symbolic(inputs);
  if (!symbolic) random = draw(context);
  if (inputs.is_leaf()) return image_result(inputs.tensor(), random);
  if (!inputs.is_dict() || !inputs.entries().contains("images")) {
    throw ValueError(caller(),
                     ": input must be a tensor or a dict with the key 'images', received ",
                     inputs.structure());
  }
  if (symbolic) random.emplace();
  const Tensor images = inputs.at("images").tensor();
  Shape shape = images.shape();
  if (!channels_last_ && shape.rank() == 4) shape = {shape[0], shape[2], shape[3], shape[1]};
  Tensors::Dict out = inputs.entries();
  for (auto& [key, value] : out) {
    if (key == "images") {
      value = image_result(images, random);
    } else if (!random) {
      continue;
    } else if (key == "labels" && shape.rank() == 4) {
      value = transform_labels(value.tensor(), shape, *random);
    } else if (key == "segmentation_masks") {
      value = mask_result(value.tensor(), *random);
    } else if (key == "bounding_boxes") {
      value = transform_boxes(value);
    }
  }
  return Tensors(std::move(out));
}

Tensor ImageLayer::transform_labels(const Tensor& labels, const Shape&, const ImageRandom&) const {
  return labels;
}

Tensor ImageLayer::transform_masks(const Tensor& masks, const ImageRandom& random) const {
  return transform_images(masks, random);
}

Tensors ImageLayer::transform_boxes(const Tensors& boxes) const {
  if (!moves_pixels()) return boxes;
  throw NotImplementedError(caller(),
                            ": bounding boxes cannot be moved with the pixels; remove the key "
                            "'bounding_boxes' or transform the boxes yourself");
}

std::optional<ImageRandom> ImageLayer::draw(const CallContext&) const { return ImageRandom(); }

Tensor ImageLayer::images_of(const ImageLayer& layer, const Tensor& images,
                             const ImageRandom& random) {
  return layer.transform_images(images, random);
}

Tensor ImageLayer::masks_of(const ImageLayer& layer, const Tensor& masks,
                            const ImageRandom& random) {
  return layer.moves_pixels() ? layer.transform_masks(masks, random) : masks;
}

Tensor ImageLayer::for_each_image(const std::vector<double>& numbers) const {
  return as_dtype(Tensor::from(numbers, {std::ssize(numbers), 1, 1, 1}), dtype());
}

Tensor ImageLayer::chosen(const std::vector<bool>& choices, const Tensor& changed,
                          const Tensor& images) {
  const Tensor condition = Tensor::from(choices, {std::ssize(choices), 1, 1, 1});
  return ops::where(condition, changed, images);
}

// ---- AugmentationLayer.

std::optional<ImageRandom> AugmentationLayer::draw(const CallContext& context) const {
  if (!context.training) return {};
  return ImageRandom(random_.next());
}

}  // namespace keel
