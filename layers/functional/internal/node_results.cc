#include <keel/layers/functional/internal/node_results.h>

namespace keel {
namespace {

std::pair<const GraphNode*, int> result_key(const TensorLike& t) {
  return {t.values().producer().get(), t.values().producer_output()};
}

}  // namespace

void NodeResults::add(const GraphNode& node, const Tensors& results) {
  int i = 0;
  for (const TensorLike& result : flatten(results)) results_.emplace(std::pair(&node, i++), result);
}

void NodeResults::add(const TensorLike& result, const TensorLike& by) {
  results_.emplace(result_key(result), by);
}

const TensorLike* NodeResults::find(const TensorLike& result) const {
  const auto it = results_.find(result_key(result));
  return it == results_.end() ? nullptr : &it->second;
}

Tensors NodeResults::replaced(const Tensors& tensors,
                              FunctionRef<std::string(const TensorLike&)> missing) const {
  return map_structure(tensors, [&](const TensorLike& t) -> TensorLike {
    if (!t.is_symbolic()) return t;
    const TensorLike* const by = find(t);
    if (by == nullptr) throw ValueError(missing(t));
    const Tensor mask = t.values().mask();
    const bool own_mask = mask && mask.is_symbolic() && mask.producer() != nullptr;
    if (!own_mask) return *by;
    return by->tensor().with_mask(replaced(Tensors(mask), missing).tensor());
  });
}

}  // namespace keel
