#include <algorithm>

#include <keel/autodiff/ops.h>
#include <keel/layers/registry.h>
#include <keel/layers/reshaping/reshaping.h>

namespace keel {

PermuteLayer::PermuteLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {
  std::vector<int> sorted = options_.dims;
  std::ranges::sort(sorted);
  bool in_order = !sorted.empty();
  for (size_t i = 0; i < sorted.size(); ++i) in_order &= sorted[i] == static_cast<int>(i) + 1;
  if (!in_order) {
    throw ValueError("Permute ", name(), ": dims must be a permutation of 1 ... n, received ",
                     to_json(encode(options_.dims)));
  }
}

Tensor PermuteLayer::call(const Tensor& x, const CallContext&) {
  std::vector<int> permutation = {0};
  permutation.insert(permutation.end(), options_.dims.begin(), options_.dims.end());
  if (x.rank() != static_cast<int>(permutation.size())) {
    throw ValueError("Permute ", name(), ": input must have rank ", permutation.size(),
                     ", received ", x.shape());
  }
  return ops::transpose(x, permutation);
}

KEEL_REGISTER(Layer, PermuteLayer, .package = "keras")

}  // namespace keel
