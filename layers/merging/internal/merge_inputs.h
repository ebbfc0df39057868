// Checks the inputs of layers that take a list of tensors.
#pragma once

#include <vector>

#include <keel/layers/layer.h>

namespace keel {

// Returns the tensors of the list or tuple given to a layer. A single tensor is treated as a list
// of one. Throws TypeError, naming the layer, for a dict, a nested structure or a tensor that is
// not dense, and ValueError for fewer than `least` tensors.
std::vector<Tensor> merge_inputs(const Layer& layer, const Tensors& inputs, size_t least);

// Returns merge_inputs() in one dtype, with their masks. Floating-point tensors are cast to the
// dtype of the layer; then all tensors are promoted by the rules of keras_ops::result_type().
std::vector<Tensor> promoted_inputs(const Layer& layer, const Tensors& inputs, size_t least);

}  // namespace keel
