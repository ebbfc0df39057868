#include <keel/layers/core/ternary_dense.h>

#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {

TernaryDenseLayer::TernaryDenseLayer(Options options)
    : TensorLayer(kClassName, options), options_(std::move(options)) {
  if (options_.units <= 0) {
    throw ValueError("TernaryDense ", name(), ": units must be positive, received ",
                     options_.units);
  }
  if (options_.threshold && !(*options_.threshold >= 0)) {
    throw ValueError("TernaryDense ", name(), ": threshold must not be negative, received ",
                     *options_.threshold);
  }
  set_activity_regularizer(options_.activity_regularizer);
}

void TernaryDenseLayer::build_weights(const TensorSpec& input) {
  if (input.shape.rank() < 2 || input.shape[-1] == kUnknown) {
    throw ValueError("TernaryDense ", name(),
                     ": the input must have rank 2 or more and a known last dimension, received ",
                     input.shape);
  }
  kernel_ = add_weight({.name = "kernel",
                        .shape = {input.shape[-1], options_.units},
                        .initializer = options_.kernel_initializer,
                        .regularizer = options_.kernel_regularizer,
                        .constraint = options_.kernel_constraint,
                        .dtype = dtype()});
  if (!options_.use_bias) return;
  bias_ = add_weight({.name = "bias",
                      .shape = {options_.units},
                      .initializer = options_.bias_initializer,
                      .regularizer = options_.bias_regularizer,
                      .constraint = options_.bias_constraint,
                      .dtype = dtype()});
}

Tensor TernaryDenseLayer::call(const Tensor& x, const CallContext&) {
  const Tensor kernel = kernel_.read();
  const Tensor magnitude = ops::abs(kernel);
  const Tensor scale = ops::mean(magnitude);
  const Tensor threshold = options_.threshold
                               ? Tensor::scalar<double>(*options_.threshold).cast(kernel.dtype())
                               : scale * 0.5;
  const Tensor kept = ops::cast(ops::greater(magnitude, threshold), kernel.dtype());
  // The straight-through estimator: the values are ternary, the gradient is that of the kernel.
  const Tensor ternary = kernel + ops::stop_gradient(ops::sign(kernel) * kept - kernel);
  Tensor y = ops::dense(as_dtype(x, dtype()), ternary);
  if (!options_.threshold) y = y * scale;
  return options_.activation(options_.use_bias ? y + bias_.read() : y);
}

KEEL_REGISTER(Layer, TernaryDenseLayer, .package = "keras")

}  // namespace keel
