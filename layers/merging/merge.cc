#include "layers/merging/merge.h"

#include <algorithm>

#include "autodiff/ops.h"

namespace keel {
namespace {

Tensor fold(const std::vector<Tensor>& inputs, Tensor (*fn)(const Tensor&, const Tensor&)) {
  Tensor out = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) out = fn(out, inputs[i]);
  return out;
}

}  // namespace

std::vector<Tensor> merge_inputs(const Layer& layer, const Tensors& inputs, size_t least) {
  const auto who = [&] { return layer.class_name() + " " + layer.name(); };
  const auto dense = [&](const Tensors& item) -> Tensor {
    if (!item.is_leaf() || item.leaf().layout() != Layout::kDense) {
      throw TypeError(who(), ": takes a list of dense tensors, received ", inputs.structure());
    }
    return item.tensor();
  };
  std::vector<Tensor> out;
  if (inputs.is_sequence()) {
    for (const Tensors& item : inputs.items()) out.push_back(dense(item));
  } else {
    out.push_back(dense(inputs));
  }
  if (out.size() < least) {
    throw ValueError(who(), ": needs at least ", least, " tensors, received ", out.size());
  }
  return out;
}

Tensors MergeLayer::call(const Tensors& inputs, const CallContext&) {
  std::vector<Tensor> tensors = merge_inputs(*this, inputs, least_inputs_);
  int rank = 0;
  for (const Tensor& t : tensors) rank = std::max(rank, t.rank());
  for (Tensor& t : tensors) {
    while (t.rank() > 0 && t.rank() < rank) t = ops::expand_dims(t, 1);
  }
  return merge(tensors);
}

Tensor AddLayer::merge(const std::vector<Tensor>& inputs) const { return fold(inputs, ops::add); }

Tensor MultiplyLayer::merge(const std::vector<Tensor>& inputs) const {
  return fold(inputs, ops::multiply);
}

Tensor SubtractLayer::merge(const std::vector<Tensor>& inputs) const {
  if (inputs.size() != 2) {
    throw ValueError("Subtract ", name(), ": needs two tensors, received ", inputs.size());
  }
  return ops::subtract(inputs[0], inputs[1]);
}

Tensor AverageLayer::merge(const std::vector<Tensor>& inputs) const {
  return ops::scale(fold(inputs, ops::add), 1.0 / static_cast<double>(inputs.size()));
}

Tensor MaximumLayer::merge(const std::vector<Tensor>& inputs) const {
  return fold(inputs, ops::maximum);
}

Tensor MinimumLayer::merge(const std::vector<Tensor>& inputs) const {
  return fold(inputs, ops::minimum);
}

}  // namespace keel
