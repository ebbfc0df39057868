#include "layers/core/dense.h"

#include "layers/cast.h"

namespace keel {

DenseLayer::DenseLayer(Options options)
    : TensorLayer(kClassName, options), options_(std::move(options)) {
  if (options_.units <= 0) {
    throw ValueError("Dense ", name(), ": units must be positive, received ", options_.units);
  }
  set_activity_regularizer(options_.activity_regularizer);
}

void DenseLayer::build_weights(const TensorSpec& input) {
  if (input.shape.rank() < 2 || input.shape[-1] == kUnknown) {
    throw ValueError("Dense ", name(),
                     ": needs an input of rank 2 or more with a known last dimension, received ",
                     input.shape);
  }
  kernel_ = add_weight({.name = "kernel",
                        .shape = {input.shape[-1], options_.units},
                        .initializer = options_.kernel_initializer,
                        .regularizer = options_.kernel_regularizer,
                        .constraint = options_.kernel_constraint,
                        .dtype = dtype()});
  if (options_.use_bias) {
    bias_ = add_weight({.name = "bias",
                        .shape = {options_.units},
                        .initializer = options_.bias_initializer,
                        .regularizer = options_.bias_regularizer,
                        .constraint = options_.bias_constraint,
                        .dtype = dtype()});
  }
}

Tensor DenseLayer::call(const Tensor& x, const CallContext&) {
  Tensor y = ops::matmul(as_dtype(x, dtype()), kernel_);
  if (options_.use_bias) y = y + bias_;
  return options_.activation(y);
}

}  // namespace keel
