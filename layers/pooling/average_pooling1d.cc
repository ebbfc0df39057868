#include <keel/layers/pooling/average_pooling1d.h>

#include <algorithm>

#include <keel/autodiff/ops.h>
#include <keel/layers/registry.h>

namespace keel {

Tensor AveragePooling1DLayer::pool(const std::vector<Tensor>& elements,
                                   const Windows& windows) const {
  Tensor sum = elements[0];
  for (size_t k = 1; k < elements.size(); ++k) sum = sum + elements[k];
  std::vector<double> counts;
  for (int64_t i = 0; i < windows.count; ++i) {
    const int64_t begin = i * windows.stride - windows.before;
    const int64_t end = std::min(begin + windows.size, windows.steps);
    counts.push_back(static_cast<double>(end - std::max<int64_t>(begin, 0)));
  }
  return sum / Tensor::from(counts, {1, windows.count, 1}).cast(sum.dtype());
}

KEEL_REGISTER(Layer, AveragePooling1DLayer)

}  // namespace keel
