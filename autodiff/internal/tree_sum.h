// Sums over replicas.
#pragma once

#include <span>

#include <keel/framework/tensor.h>

namespace keel {

// The sum as a balanced tree over the position whose left half is the largest power of two, so
// that aligned groups of replicas may sum their own part first without changing a bit.
// `values` is not empty; all have one shape and dtype.
Tensor tree_sum(std::span<const Tensor> values);

}  // namespace keel
