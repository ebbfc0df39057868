// Scaled dot-product attention as one differentiable function.
#pragma once

#include <cstdint>

#include <keel/framework/tensor.h>

namespace keel::ops {

// Options of attention().
struct AttentionOptions {
  double scale = 1;  // factor of the products of queries and keys
  // bool [matrices, queries, keys]: which keys a query sees; empty: all. Each dimension may be 1,
  // and the first may divide that of the query: matrices next to each other then share a part.
  Tensor mask = {};
  bool causal = false;  // query i sees keys 0 to i
  int64_t window = 0;   // if positive, query i sees the keys within window - 1 steps
};

// Returns softmax(scale query . key^T) . value for query [matrices, queries, dim], key [matrices,
// keys, dim] and value [matrices, keys, value_dim] of dtype float32, without storing the weights.
// The products with keys that a query does not see are reduced by 1e9. The bits do not depend on
// the number of workers. Throws TypeError for another dtype and ValueError for shapes that do not
// match.
Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                 const AttentionOptions& options = {});

}  // namespace keel::ops
