#include <algorithm>

#include <keel/autodiff/ops.h>
#include <keel/layers/merging/internal/merge_inputs.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {

std::vector<Tensor> ConcatenateLayer::compute_mask(const Tensors& inputs, const Tensors&) const {
  const std::vector<Tensor> tensors = merge_inputs(*this, inputs, 1);
  if (std::ranges::none_of(tensors, [](const Tensor& t) { return static_cast<bool>(t.mask()); })) {
    return {};
  }
  std::vector<Tensor> counts;
  for (const Tensor& t : tensors) {
    Tensor mask = t.mask();
    if (!mask) {
      counts.push_back(ops::cast(ops::ones_like(t), DType::kFloat32));
      continue;
    }
    while (mask.rank() < t.rank()) mask = ops::expand_dims(mask, mask.rank());
    counts.push_back(ops::cast(ops::broadcast_to(mask, t.shape()), DType::kFloat32));
  }
  return {ops::cast(ops::max(ops::concat(counts, options_.axis), {-1}), DType::kBool)};
}

Tensors ConcatenateLayer::call(const Tensors& inputs, const CallContext&) {
  return ops::concat(promoted_inputs(*this, inputs, 1), options_.axis);
}

std::optional<PlanValues> ConcatenateLayer::plan(Planner& planner, const PlanValues& inputs) const {
  if (dtype() != DType::kFloat32) return {};
  const auto parts = planner.rows(inputs);
  if (!parts) return {};
  Shape row = planner.row_shape(parts->front());
  const int rank = row.rank() + 1;
  const int axis = options_.axis < 0 ? options_.axis + rank : options_.axis;
  // Rows of several axes are contiguous only along the first one, so others are left to call().
  if (rank < 2 || axis != 1) return {};
  int64_t length = 0;
  for (PlanValue part : *parts) {
    const Shape shape = planner.row_shape(part);
    if (shape.rank() != row.rank() || shape.without(0) != row.without(0)) return {};
    length += shape[0];
  }
  return planner.joined(*parts, row.with(0, length));
}

KEEL_REGISTER(Layer, ConcatenateLayer, .package = "keras")

}  // namespace keel
