#include <keel/layers/image/mixing.h>

#include <cmath>

#include <keel/autodiff/ops.h>
#include <keel/layers/image/internal/rectangle.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

constexpr int kPermutation = 0;  // the index of this draw

// Returns the samples in a random order.
Tensor permuted(const Tensor& x, const ImageRandom& random) {
  const int64_t n = x.dim(0);
  return ops::gather(x, Tensor::from(random.permutation(kPermutation, n), {n}));
}

// Returns w x + (1 - w) y for samples x and permuted samples y. There is one weight, or one for
// each sample.
Tensor mixed(const Tensor& x, const std::vector<double>& weights, const ImageRandom& random) {
  std::vector<int64_t> dims(x.rank(), 1);
  dims[0] = std::ssize(weights);
  const Tensor w = as_dtype(Tensor::from(weights, Shape(dims)), x.dtype());
  return w * x + (-w + 1.0) * permuted(x, random);
}

void check_labels(const Tensor& labels, const Shape& images, const std::string& caller) {
  if (!is_floating(labels.dtype())) {
    throw TypeError(caller, ": labels must be floating-point, such as one-hot vectors, received ",
                    labels.dtype());
  }
  if (labels.rank() < 1 || (!labels.is_symbolic() && labels.dim(0) != images[0])) {
    throw ValueError(caller, ": labels must have one row for each of ", images[0],
                     " images, received shape ", labels.shape());
  }
}

// Returns the rectangles of CutMix.
std::vector<Rectangle> cut_out(const FactorRange& factor, const Shape& images,
                               const ImageRandom& random) {
  const double alpha = random.part(0).uniform(0, 0, factor) + 1e-6;
  std::vector<Rectangle> out;
  for (int64_t i = 0; i < images[0]; ++i) {
    const double side = std::sqrt(1 - random.beta(i, 1, alpha));
    out.push_back(random_rectangle(random, i, 0, side, side, images));
  }
  return out;
}

CutMixOptions with_alpha_range(CutMixOptions options) {
  // A negative factor has no gamma distribution.
  if (options.factor.is_pair()) options.factor.within(0, 1, "CutMix: factor");
  options.factor = options.factor.symmetric(0, 1, "CutMix: factor");
  return options;
}

}  // namespace

// ---- MixUp.

MixUpLayer::MixUpLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {
  if (!(options_.alpha > 0)) {
    throw ValueError(caller(), ": alpha must be positive, received ", options_.alpha);
  }
}

Tensor MixUpLayer::transform_images(const Tensor& images, const ImageRandom& random) const {
  return mixed(images, {random.beta(0, 1, options_.alpha)}, random);
}

Tensor MixUpLayer::transform_labels(const Tensor& labels, const Shape& images,
                                    const ImageRandom& random) const {
  check_labels(labels, images, caller());
  return labels.is_symbolic() ? labels : transform_images(labels, random);
}

// ---- CutMix.

CutMixLayer::CutMixLayer(Options options)
    : OptionsLayer(kClassName, with_alpha_range(std::move(options))) {}

Tensor CutMixLayer::transform_images(const Tensor& images, const ImageRandom& random) const {
  const std::vector<Rectangle> cuts = cut_out(options_.factor, images.shape(), random);
  return ops::where(inside_of(cuts, images.shape()), permuted(images, random), images);
}

Tensor CutMixLayer::transform_labels(const Tensor& labels, const Shape& images,
                                     const ImageRandom& random) const {
  check_labels(labels, images, caller());
  if (labels.is_symbolic()) return labels;
  const auto area = static_cast<double>(images[1] * images[2]);
  std::vector<double> weights;
  for (const Rectangle& r : cut_out(options_.factor, images, random)) {
    weights.push_back(1 - (r.right - r.left) * (r.bottom - r.top) / area);
  }
  return mixed(labels, weights, random);
}

#define REGISTER(name)                                                     \
  KEEL_REGISTER(Layer, name, .package = "keras", .call = "data, training", \
                .ignored_keys = "bounding_box_format=null")
REGISTER(MixUpLayer)
REGISTER(CutMixLayer)
#undef REGISTER

}  // namespace keel
