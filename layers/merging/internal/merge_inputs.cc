#include <keel/layers/merging/internal/merge_inputs.h>

namespace keel {

std::vector<Tensor> merge_inputs(const Layer& layer, const Tensors& inputs, size_t least) {
  const auto caller = [&] { return layer.class_name() + " " + layer.name(); };
  const auto dense = [&](const Tensors& item) -> Tensor {
    if (!item.is_leaf() || item.leaf().layout() != Layout::kDense) {
      throw TypeError(caller(), ": inputs must be a list of dense tensors, received ",
                      inputs.structure());
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
    throw ValueError(caller(), ": at least ", least, " tensors are required, received ",
                     out.size());
  }
  return out;
}

}  // namespace keel
