#include <keel/layers/activation/activation.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {

void PReLULayer::build_weights(const TensorSpec& input) {
  const std::string caller = "PReLU " + name();
  if (input.shape.rank() < 2) {
    throw ValueError(caller, ": the input must have rank 2 or more, received ", input.shape);
  }
  Shape shape = input.shape;
  if (options_.shared_axes && !options_.shared_axes->values().empty()) {
    for (int axis : options_.shared_axes->normalized(input.shape, caller)) {
      if (axis == 0) throw ValueError(caller, ": shared_axes must not contain the batch axis");
      shape = shape.with(axis, 1);
    }
  }
  shape = shape.without(0);
  if (!shape.fully_defined()) {
    throw ValueError(caller, ": all dimensions except shared_axes must be known, received ",
                     input.shape);
  }
  alpha_ = add_weight({.name = "alpha",
                       .shape = shape,
                       .initializer = options_.alpha_initializer,
                       .regularizer = options_.alpha_regularizer,
                       .constraint = options_.alpha_constraint,
                       .dtype = dtype()});
}

Tensor PReLULayer::call(const Tensor& input, const CallContext&) {
  const Tensor x = as_dtype(input, dtype());
  return ops::relu(x) - ops::multiply(alpha_, ops::relu(-x));
}

KEEL_REGISTER(Layer, PReLULayer, .package = "keras")

}  // namespace keel
