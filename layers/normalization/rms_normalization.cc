#include <keel/layers/internal/cast.h>
#include <keel/layers/internal/normalize_axes.h>
#include <keel/layers/normalization/layer_normalization.h>
#include <keel/layers/registry.h>

namespace keel {

RMSNormalizationLayer::RMSNormalizationLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  if (!(options_.epsilon >= 0)) {
    throw ValueError("RMSNormalization ", name(), ": epsilon must not be negative, received ",
                     options_.epsilon);
  }
}

void RMSNormalizationLayer::build_weights(const TensorSpec& input) {
  Shape shape;
  for (int axis : options_.axis.normalized(input.shape, "RMSNormalization " + name())) {
    shape = shape.inserted(shape.rank(), input.shape[axis]);
  }
  if (!shape.fully_defined()) {
    throw ValueError("RMSNormalization ", name(),
                     ": dimensions along the axes must be known, received shape ", input.shape);
  }
  scale_ = add_weight({.name = "scale", .shape = shape, .initializer = "ones", .dtype = dtype()});
}

Tensor RMSNormalizationLayer::call(const Tensor& input, const CallContext&) {
  const std::string caller = "RMSNormalization " + name();
  const Tensor x = as_dtype(input, dtype());
  return normalize_axes(x, options_.axis.normalized(x.shape(), caller), scale_, {},
                        {.epsilon = options_.epsilon, .moments = ops::Moments::kMeanSquare},
                        caller);
}

KEEL_REGISTER(Layer, RMSNormalizationLayer, .package = "keras")

}  // namespace keel
