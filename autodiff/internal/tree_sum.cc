#include <keel/autodiff/internal/tree_sum.h>

#include <bit>

#include <keel/autodiff/ops.h>

namespace keel {

Tensor tree_sum(std::span<const Tensor> values) {
  if (values.size() == 1) return values[0];
  const size_t half = std::bit_floor(values.size() - 1);
  return ops::add(tree_sum(values.first(half)), tree_sum(values.subspan(half)));
}

}  // namespace keel
