#include <keel/optimizers/step/unscaled_gradient.h>

#include <keel/autodiff/ops.h>

namespace keel {

Gradient unscaled_gradient(const Gradient& gradient, float scale) {
  if (!gradient) return gradient;
  const auto divide = [&](const Tensor& x) {
    const Tensor divisor = x.dtype() == DType::kFloat64 ? Tensor::scalar(static_cast<double>(scale))
                                                        : Tensor::scalar(scale);
    return ops::divide(x, divisor);
  };
  if (!gradient.is_slices()) return divide(gradient.dense());
  IndexedSlices out = gradient.slices();
  out.values = divide(out.values);
  return out;
}

}  // namespace keel
