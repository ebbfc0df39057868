#include <keel/layers/activation/activation.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

Tensor softmax_over(const Tensor& x, const std::vector<int>& axes) {
  if (axes.size() == 1) return ops::softmax(x, axes[0]);
  // Subtracting the maximum avoids overflow. It cancels, so it needs no gradient.
  const Tensor powers = ops::exp(x - ops::stop_gradient(ops::max(x, axes, true)));
  return powers / ops::sum(powers, axes, true);
}

}  // namespace

Tensor SoftmaxLayer::call(const Tensor& input, const CallContext&) {
  constexpr double kFarBelow = -1e9;
  const Tensor x = is_floating(input.dtype()) ? input : as_dtype(input, dtype());
  const std::vector<int> axes = options_.axis.normalized(x.shape(), "Softmax " + name());
  Tensor mask = input.mask();
  if (!mask) return softmax_over(x, axes);
  while (mask.rank() < x.rank()) mask = ops::expand_dims(mask, mask.rank());
  const auto constant = [&](double value) { return Tensor::scalar<double>(value).cast(x.dtype()); };
  const Tensor y = softmax_over(ops::where(mask, x, constant(kFarBelow)), axes);
  // If the mask excludes all elements, the softmax of equal values is not 0.
  return ops::where(mask, y, constant(0));
}

KEEL_REGISTER(Layer, SoftmaxLayer, .package = "keras", .call = "inputs, mask")

}  // namespace keel
