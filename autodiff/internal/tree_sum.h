// tree_sum() adds tensors of replicas in a fixed order.
#pragma once

#include <span>

#include <keel/framework/tensor.h>

namespace keel {

// Returns the sum of `values` as a balanced tree over their positions. The left half of each node
// is the largest power of two, so aligned groups of replicas can add their own part first without
// changing a bit of the result. `values` must not be empty; all have the same shape and dtype.
Tensor tree_sum(std::span<const Tensor> values);

}  // namespace keel
