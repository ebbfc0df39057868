#include <keel/layers/merging/internal/merge_inputs.h>

#include <keel/autodiff/keras_ops/operand.h>
#include <keel/layers/internal/cast.h>

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

std::vector<Tensor> promoted_inputs(const Layer& layer, const Tensors& inputs, size_t least) {
  std::vector<Tensor> out = merge_inputs(layer, inputs, least);
  const auto cast = [](Tensor& x, DType dtype) {
    if (x.dtype() == dtype) return;
    const Tensor mask = x.mask();
    x = as_dtype(x, dtype);
    if (mask) x = x.with_mask(mask);
  };
  DType common = out.front().dtype();
  for (Tensor& x : out) {
    if (is_floating(x.dtype()) && is_floating(layer.dtype())) cast(x, layer.dtype());
    common =
        &x == &out.front() ? x.dtype() : keras_ops::result_type({Tensor::zeros({}, common), x});
  }
  for (Tensor& x : out) cast(x, common);
  return out;
}

}  // namespace keel
