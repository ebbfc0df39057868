// Functions of sparse tensors.
#pragma once

#include <keel/framework/tensor_like.h>

namespace keel {

// Returns the dense tensor of the same shape. Elements without an entry are 0, false or "". Of
// several entries for one element, numbers are added and the last string is taken. The result of a
// symbolic tensor is symbolic and has no producer. Not differentiable.
Tensor to_dense(const SparseTensor& x);

}  // namespace keel
