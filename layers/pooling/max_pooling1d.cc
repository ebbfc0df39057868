#include <keel/layers/pooling/max_pooling1d.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/registry.h>

namespace keel {

Tensor MaxPooling1DLayer::pool(const std::vector<Tensor>& elements, const Windows&) const {
  Tensor greatest = elements[0];
  for (size_t k = 1; k < elements.size(); ++k) {
    const Tensor& next = elements[k];
    // NaN wins, so that it propagates to the result.
    const Tensor wins = ops::logical_or(ops::greater(next, greatest), ops::is_nan(next));
    greatest = ops::where(wins, next, greatest);
  }
  return greatest;
}

KEEL_REGISTER(Layer, MaxPooling1DLayer)

}  // namespace keel
