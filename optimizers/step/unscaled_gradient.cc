#include <keel/optimizers/step/unscaled_gradient.h>

#include <atomic>
#include <cmath>

#include <keel/autodiff/ops.h>
#include <keel/framework/base/parallel.h>

namespace keel {
namespace {

constexpr int64_t kGrain = 1 << 16;

bool all_finite(const Tensor& x) {
  std::atomic<bool> out = true;
  const auto check = [&]<class T>(std::span<const T> values) {
    parallel_for(std::ssize(values), kGrain, [&](int64_t begin, int64_t end) {
      // x - x is 0 for finite x and NaN otherwise.
      T sum = 0;
      for (int64_t i = begin; i < end; ++i) sum += values[i] - values[i];
      if (sum != 0 || std::isnan(sum)) out = false;
    });
  };
  if (x.dtype() == DType::kFloat64) {
    check(x.data<double>());
  } else if (x.dtype() == DType::kFloat32) {
    check(x.data<float>());
  }
  return out;
}

}  // namespace

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

bool is_finite(const Gradient& gradient) {
  if (!gradient) return true;
  return all_finite(gradient.is_slices() ? gradient.slices().values : gradient.dense());
}

}  // namespace keel
