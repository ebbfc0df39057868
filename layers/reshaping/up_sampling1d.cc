#include <keel/layers/reshaping/up_sampling1d.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/registry.h>

namespace keel {

UpSampling1DLayer::UpSampling1DLayer(Options options)
    : TensorLayer(kClassName, options), options_(std::move(options)) {
  if (options_.size <= 0) {
    throw ValueError("UpSampling1D ", name(), ": size must be positive, received ", options_.size);
  }
}

Tensor UpSampling1DLayer::call(const Tensor& x, const CallContext&) {
  if (x.rank() != 3) {
    throw ValueError("UpSampling1D ", name(),
                     ": input must be [batch, steps, features], received shape ", x.shape());
  }
  const int64_t steps = x.dim(1) == kUnknown ? kUnknown : x.dim(1) * options_.size;
  const Shape shape = x.shape().with(1, steps);
  if (x.is_symbolic()) return Tensor::symbolic({.shape = shape, .dtype = x.dtype()});
  const Tensor repeated =
      ops::broadcast_to(ops::expand_dims(x, 2), {x.dim(0), x.dim(1), options_.size, x.dim(2)});
  return ops::reshape(repeated, shape);
}

KEEL_REGISTER(Layer, UpSampling1DLayer)

}  // namespace keel
