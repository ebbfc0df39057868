#include <keel/layers/normalization/layer_normalization.h>

#include <keel/layers/internal/cast.h>
#include <keel/layers/internal/normalize_axes.h>
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
  const std::string caller = "LayerNormalization " + name();
  const Tensor x = as_dtype(input, dtype());
  return normalize_axes(x, options_.axis.normalized(x.shape(), caller),
                        gamma_ ? gamma_.read() : Tensor(), beta_ ? beta_.read() : Tensor(),
                        {.epsilon = options_.epsilon, .subtract_mean = !options_.rms_scaling},
                        caller);
}

KEEL_REGISTER(Layer, LayerNormalizationLayer, .package = "keras")

}  // namespace keel
