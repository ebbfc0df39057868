#include <keel/layers/core/core.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {

MaskingLayer::MaskingLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {}

Tensor MaskingLayer::steps_that_count(const Tensor& x, bool keepdims) const {
  if (x.rank() < 2) {
    throw ValueError("Masking ", name(), ": the input must have rank 2 or more, received ",
                     x.shape());
  }
  const Tensor value = ops::shift(ops::zeros_like(x), options_.mask_value);
  const Tensor differs = ops::cast(ops::not_equal(x, value), DType::kFloat32);
  return ops::cast(ops::max(differs, {-1}, keepdims), DType::kBool);
}

std::vector<Tensor> MaskingLayer::compute_mask(const Tensors& inputs, const Tensors&) const {
  return {steps_that_count(as_dtype(inputs.tensor(), dtype()), false)};
}

Tensor MaskingLayer::call(const Tensor& input, const CallContext&) {
  const Tensor x = as_dtype(input, dtype());
  return x * ops::cast(steps_that_count(x, true), dtype());
}

KEEL_REGISTER(Layer, MaskingLayer, .package = "keras")

}  // namespace keel
