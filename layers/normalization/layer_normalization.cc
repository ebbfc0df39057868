#include "layers/normalization/layer_normalization.h"

#include <algorithm>

#include "layers/cast.h"

namespace keel {

LayerNormalizationLayer::LayerNormalizationLayer(Options options)
    : TensorLayer(kClassName, options), options_(std::move(options)) {
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
                     ": needs known dimensions along its axes, received ", input.shape);
  }
  const auto add = [&](const char* name, const Initializer& initializer) {
    return add_weight({.name = name, .shape = shape, .initializer = initializer, .dtype = dtype()});
  };
  if (options_.scale) gamma_ = add("gamma", options_.gamma_initializer);
  if (options_.center) beta_ = add("beta", options_.beta_initializer);
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
  Tensor y = centered * ops::rsqrt(variance + options_.epsilon);
  if (options_.scale) y = y * ops::reshape(gamma_, broadcast);
  if (options_.center) y = y + ops::reshape(beta_, broadcast);
  return y;
}

}  // namespace keel
