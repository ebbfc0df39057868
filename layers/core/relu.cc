#include "layers/core/relu.h"

#include <limits>

#include "autodiff/ops.h"
#include "layers/activations.h"
#include "layers/cast.h"

namespace keel {

ReLULayer::ReLULayer(Options options)
    : TensorLayer(kClassName, options), options_(std::move(options)) {
  const auto check = [this](const char* option, double value) {
    if (value >= 0) return;
    throw ValueError("ReLU ", name(), ": ", option, " must not be negative, received ", value);
  };
  check("max_value", options_.max_value.value_or(0));
  check("negative_slope", options_.negative_slope);
  check("threshold", options_.threshold);
}

// x above the threshold, up to the limit; 0 elsewhere.
Tensor ReLULayer::above(const Tensor& x) const {
  if (options_.threshold == 0 && options_.max_value == 6.0) return activations::get("relu6")(x);
  Tensor y = x;
  if (options_.threshold == 0) {
    y = ops::relu(x);
  } else {
    const Tensor threshold = Tensor::scalar<double>(options_.threshold).cast(x.dtype());
    y = ops::where(ops::less_equal(x, threshold), ops::zeros_like(x), x);  // NaN stays
  }
  return options_.max_value ? ops::clip_by_value(y, 0, *options_.max_value) : y;
}

// x - threshold below the threshold, 0 elsewhere.
Tensor ReLULayer::below(const Tensor& x) const {
  if (options_.threshold == 0 && !options_.max_value) {  // with gradient 1 at 0
    return ops::clip_by_value(x, -std::numeric_limits<double>::infinity(), 0);
  }
  return -ops::relu(options_.threshold == 0 ? -x : ops::shift(-x, options_.threshold));
}

Tensor ReLULayer::call(const Tensor& input, const CallContext&) {
  const Tensor x = is_floating(input.dtype()) ? input : as_dtype(input, dtype());
  if (options_.negative_slope == 0) return above(x);
  return above(x) + ops::scale(below(x), options_.negative_slope);
}

}  // namespace keel
