#include <keel/autodiff/ops.h>
#include <keel/layers/registry.h>
#include <keel/layers/reshaping/reshaping.h>

namespace keel {

RepeatVectorLayer::RepeatVectorLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  if (options_.n <= 0) {
    throw ValueError("RepeatVector ", name(), ": n must be positive, received ", options_.n);
  }
}

Tensor RepeatVectorLayer::call(const Tensor& x, const CallContext&) {
  if (x.rank() != 2) {
    throw ValueError("RepeatVector ", name(), ": input must be [batch, features], received shape ",
                     x.shape());
  }
  return ops::broadcast_to(ops::expand_dims(x, 1), {x.dim(0), options_.n, x.dim(1)});
}

KEEL_REGISTER(Layer, RepeatVectorLayer, .package = "keras")

}  // namespace keel
