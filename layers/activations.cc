#include <keel/layers/activations.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include <keel/autodiff/ops.h>

namespace keel::activations {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor constant(double value, DType dtype) { return Tensor::scalar(value).cast(dtype); }

// Returns min(x, 0) with gradient 1 at 0.
Tensor negative_part(const Tensor& x) { return ops::clip_by_value(x, -kInfinity, 0); }

// Returns e^x - 1 without cancellation near 0. With t = tanh(x / 2), it equals 2 t / (1 - t).
Tensor expm1_of_negative(const Tensor& x) {
  const Tensor t = ops::tanh(ops::scale(x, 0.5));
  return ops::scale(ops::divide(t, ops::shift(ops::negative(t), 1)), 2);
}

// Clips x to [low, high] with gradient 0 at the bounds, as some Keras functions do. The gradient of
// clip_by_value is 1 there.
Tensor saturate(const Tensor& x, double low, double high) {
  const Tensor bounded = ops::stop_gradient(ops::clip_by_value(x, low, high));
  const Tensor above = ops::greater(x, constant(low, x.dtype()));
  const Tensor below = ops::less(x, constant(high, x.dtype()));
  return ops::where(above, ops::where(below, x, bounded), bounded);
}

// Returns x above the threshold, up to max_value, and 0 elsewhere.
Tensor relu_above(const Tensor& x, std::optional<double> max_value, double threshold) {
  if (threshold == 0 && max_value == 6.0) return relu6(x);
  Tensor y = x;
  if (threshold == 0) {
    y = ops::relu(x);
  } else {
    const Tensor is_below = ops::less_equal(x, constant(threshold, x.dtype()));
    y = ops::where(is_below, ops::zeros_like(x), x);  // NaN is preserved
  }
  return max_value ? ops::clip_by_value(y, 0, *max_value) : y;
}

// Returns x - threshold below the threshold, and 0 elsewhere.
Tensor relu_below(const Tensor& x, std::optional<double> max_value, double threshold) {
  if (threshold == 0 && !max_value) return negative_part(x);
  return -ops::relu(threshold == 0 ? -x : ops::shift(-x, threshold));
}

}  // namespace

Tensor relu(const Tensor& x, double negative_slope, std::optional<double> max_value,
            double threshold) {
  Tensor above = relu_above(x, max_value, threshold);
  if (negative_slope == 0) return above;
  return above + ops::scale(relu_below(x, max_value, threshold), negative_slope);
}

Tensor relu6(const Tensor& x) { return saturate(x, 0, 6); }

Tensor leaky_relu(const Tensor& x, double negative_slope) {
  return ops::relu(x) + ops::scale(negative_part(x), negative_slope);
}

Tensor elu(const Tensor& x, double alpha) {
  return ops::relu(x) + ops::scale(expm1_of_negative(negative_part(x)), alpha);
}

Tensor celu(const Tensor& x, double alpha) {
  const Tensor below = expm1_of_negative(ops::scale(negative_part(x), 1 / alpha));
  return ops::relu(x) + ops::scale(below, alpha);
}

Tensor selu(const Tensor& x) {
  constexpr double kAlpha = 1.6732632423543772;
  constexpr double kScale = 1.0507009873554805;
  return ops::scale(elu(x, kAlpha), kScale);
}

Tensor gelu(const Tensor& x, bool approximate) {
  Tensor twice_phi;
  if (approximate) {
    const Tensor cubic = x + ops::scale(x * ops::square(x), 0.044715);
    twice_phi = ops::shift(ops::tanh(ops::scale(cubic, std::sqrt(2 * std::numbers::inv_pi))), 1);
  } else {
    twice_phi = ops::shift(ops::erf(ops::scale(x, std::numbers::sqrt2 / 2)), 1);
  }
  return ops::scale(x * twice_phi, 0.5);
}

Tensor silu(const Tensor& x) { return x * ops::sigmoid(x); }
Tensor mish(const Tensor& x) { return x * ops::tanh(ops::softplus(x)); }
Tensor sigmoid(const Tensor& x) { return ops::sigmoid(x); }
Tensor log_sigmoid(const Tensor& x) { return -ops::softplus(-x); }
Tensor hard_sigmoid(const Tensor& x, double slope) {
  if (slope == 1.0 / 6) return ops::scale(relu6(ops::shift(x, 3)), slope);
  return saturate(ops::shift(ops::scale(x, slope), 0.5), 0, 1);
}

Tensor hard_silu(const Tensor& x) {
  return x * ops::scale(ops::clip_by_value(ops::shift(x, 3), 0, 6), 1.0 / 6);
}

Tensor tanh(const Tensor& x) { return ops::tanh(x); }
Tensor hard_tanh(const Tensor& x) { return saturate(x, -1, 1); }
Tensor tanh_shrink(const Tensor& x) { return x - ops::tanh(x); }

Tensor hard_shrink(const Tensor& x, double threshold) {
  const Tensor is_far = ops::greater(ops::abs(x), constant(threshold, x.dtype()));
  return ops::where(is_far, x, ops::zeros_like(x));
}

Tensor soft_shrink(const Tensor& x, double threshold) {
  return ops::relu(ops::shift(x, -threshold)) - ops::relu(ops::shift(-x, -threshold));
}

Tensor threshold(const Tensor& x, double threshold, double default_value) {
  const Tensor is_above = ops::greater(x, constant(threshold, x.dtype()));
  return ops::where(is_above, x, constant(default_value, x.dtype()));
}

Tensor softplus(const Tensor& x) { return ops::softplus(x); }
Tensor softsign(const Tensor& x) { return ops::divide(x, ops::shift(ops::abs(x), 1)); }

Tensor squareplus(const Tensor& x, double b) {
  return ops::scale(x + ops::sqrt(ops::shift(ops::square(x), b)), 0.5);
}

Tensor sparse_plus(const Tensor& x) {
  const Tensor middle = ops::scale(ops::square(ops::shift(ops::clip_by_value(x, -1, 1), 1)), 0.25);
  return middle + ops::relu(ops::shift(x, -1));
}

Tensor sparse_sigmoid(const Tensor& x) { return ops::scale(ops::shift(hard_tanh(x), 1), 0.5); }
Tensor exponential(const Tensor& x) { return ops::exp(x); }
Tensor linear(const Tensor& x) { return x; }

Tensor softmax(const Tensor& x, int axis) { return ops::softmax(x, axis); }
Tensor log_softmax(const Tensor& x, int axis) { return ops::log_softmax(x, axis); }
Tensor sparsemax(const Tensor& x, int axis) { return ops::sparsemax(x, axis); }

Tensor glu(const Tensor& x, int axis) {
  if (x.dim(axis) % 2 != 0) {
    throw ValueError("glu: axis ", axis, " must have an even length, received shape ", x.shape());
  }
  const std::vector<Tensor> halves = ops::split(x, 2, axis);
  return halves[0] * ops::sigmoid(halves[1]);
}

}  // namespace keel::activations
