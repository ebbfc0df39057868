#include <keel/layers/reshaping/cropping1d.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/registry.h>

namespace keel {

Cropping1DLayer::Cropping1DLayer(Options options)
    : TensorLayer(kClassName, options), options_(std::move(options)) {
  const auto [before, after] = options_.cropping;
  if (before < 0 || after < 0) {
    throw ValueError("Cropping1D ", name(), ": cropping must not be negative, received ", before,
                     " and ", after);
  }
}

Tensor Cropping1DLayer::call(const Tensor& x, const CallContext&) {
  const auto [before, after] = options_.cropping;
  if (x.rank() != 3) {
    throw ValueError("Cropping1D ", name(),
                     ": input must be [batch, steps, features], received shape ", x.shape());
  }
  const int64_t steps = x.dim(1);
  if (steps == kUnknown) {
    return Tensor::symbolic(x.spec());
  }
  if (before + after >= steps) {
    throw ValueError("Cropping1D ", name(), ": cropping of ", before, " and ", after,
                     " leaves no steps of an input of shape ", x.shape());
  }
  return ops::slice(x, 1, before, steps - before - after);
}

KEEL_REGISTER(Layer, Cropping1DLayer)

}  // namespace keel
