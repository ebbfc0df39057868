#include <keel/layers/normalization/layer_normalization.h>

#include <algorithm>

#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {

LayerNormalizationLayer::LayerNormalizationLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  if (!(options_.epsilon >= 0)) {
    throw ValueError("LayerNormalization ", name(), ": epsilon must not be negative, received ",
                     options_.epsilon);
  }
}

void LayerNormalizationLayer::build_weights(const TensorSpec& input) {
  Shape shape;
  for (int axis : options_.axis.normalized(input.shape, "LayerNormalization " + name())) {
    shape = shape.inserted(shape.rank(), input.shape[axis]);
  }
  if (!shape.fully_defined()) {
    throw ValueError("LayerNormalization ", name(),
                     ": dimensions along the axes must be known, received shape ", input.shape);
  }
  if (options_.scale || options_.rms_scaling) {
    gamma_ = add_weight({.name = "gamma",
                         .shape = shape,
                         .initializer = options_.gamma_initializer,
                         .regularizer = options_.gamma_regularizer,
                         .constraint = options_.gamma_constraint,
                         .dtype = dtype()});
  }
  if (options_.center && !options_.rms_scaling) {
    beta_ = add_weight({.name = "beta",
                        .shape = shape,
                        .initializer = options_.beta_initializer,
                        .regularizer = options_.beta_regularizer,
                        .constraint = options_.beta_constraint,
                        .dtype = dtype()});
  }
}

Tensor LayerNormalizationLayer::call(const Tensor& input, const CallContext&) {
  const Tensor x = as_dtype(input, dtype());
  const std::vector<int> axes = options_.axis.normalized(x.shape(), "LayerNormalization " + name());
  Shape broadcast;
  for (int i = 0; i < x.rank(); ++i) {
    broadcast = broadcast.inserted(i, std::ranges::binary_search(axes, i) ? x.dim(i) : 1);
  }
  const Tensor centered = x - ops::mean(x, axes, true);
  const Tensor variance = ops::mean(ops::square(centered), axes, true);
  Tensor y = (options_.rms_scaling ? x : centered) * ops::rsqrt(variance + options_.epsilon);
  if (gamma_) y = y * ops::reshape(gamma_, broadcast);
  if (beta_) y = y + ops::reshape(beta_, broadcast);
  return y;
}

KEEL_REGISTER(Layer, LayerNormalizationLayer, .package = "keras")

}  // namespace keel
