// replica_sum(): a differentiable sum over the replicas of a strategy.
#pragma once

#include <keel/framework/tensor.h>

namespace keel {

// Returns true if the calling thread runs one of several replicas.
bool in_several_replicas();

// Returns the sum of the tensors that all replicas pass, in each replica; x itself if there is one
// replica. The sum is a balanced tree over the replica indices. Collective: all replicas must make
// the call, with tensors of one shape and dtype, float32 or float64.
//
// The gradient is the sum over the replicas as well, because each output depends on the tensors of
// all replicas. It is collective: all replicas must differentiate the result, or none.
Tensor replica_sum(const Tensor& x);

}  // namespace keel
