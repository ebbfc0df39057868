#include <algorithm>

#include <keel/layers/internal/cast.h>
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
  const Tensor x = as_dtype(input, dtype());
  const std::vector<int> axes = options_.axis.normalized(x.shape(), "RMSNormalization " + name());
  Shape broadcast;
  for (int i = 0; i < x.rank(); ++i) {
    broadcast = broadcast.inserted(i, std::ranges::binary_search(axes, i) ? x.dim(i) : 1);
  }
  const Tensor squares = ops::mean(ops::square(x), axes, true);
  return x * ops::rsqrt(squares + options_.epsilon) * ops::reshape(scale_, broadcast);
}

KEEL_REGISTER(Layer, RMSNormalizationLayer, .package = "keras")

}  // namespace keel
