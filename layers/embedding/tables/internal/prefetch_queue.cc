#include <keel/layers/embedding/tables/internal/prefetch_queue.h>

#include <algorithm>

namespace keel {

BatchKey::BatchKey(const Tensors& features,
                   const std::optional<Nest<std::optional<TensorLike>>>& weights) {
  const auto add = [this](const TensorLike& leaf) {
    specs.push_back(leaf.spec());
    parts.push_back(leaf.values());
    if (leaf.layout() == Layout::kRagged) parts.push_back(leaf.ragged().row_splits);
    if (leaf.layout() == Layout::kSparse) parts.push_back(leaf.sparse().indices);
  };
  for (const TensorLike& leaf : flatten(features)) add(leaf);
  if (!weights) return;
  for (const std::optional<TensorLike>& leaf : flatten(*weights)) {
    if (leaf) {
      add(*leaf);
    } else {
      parts.emplace_back();
    }
  }
}

bool BatchKey::operator==(const BatchKey& other) const {
  const auto is_same = [](const Tensor& a, const Tensor& b) {
    if (!a || !b) return !a && !b;
    if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
    if (a.dtype() == DType::kString) {
      return a.data<std::string>().data() == b.data<std::string>().data();
    }
    return a.raw().data() == b.raw().data();
  };
  return specs == other.specs && std::ranges::equal(parts, other.parts, is_same);
}

}  // namespace keel
