// Attention in blocks: the products of queries and keys are never stored as a whole (Dao et al.
// 2022).
#pragma once

#include <cstdint>

#include <keel/framework/matmul_precision.h>

namespace keel::kernels {

// Which keys a query sees. A product of a query and a key that is not seen is reduced by 1e9, so
// that a query that sees no key gets equal weights, as in Keras.
struct AttentionMask {
  // [matrices, rows, columns], or null: all. Each size is that of the attention or 1; `matrices`
  // may also divide the number of matrices, and then adjacent ones share a part.
  const bool* seen = nullptr;
  int64_t matrices = 1, rows = 1, columns = 1;
  bool causal = false;  // query i sees keys 0 to i
  int64_t window = 0;   // if positive, query i sees the keys within window - 1 steps
};

// The operands: `matrices` independent matrices of queries [queries, dim], keys [keys, dim] and
// values [keys, value_dim].
struct Attention {
  int64_t matrices = 0, queries = 0, keys = 0, dim = 0, value_dim = 0;
  float scale = 1;  // factor of the products
  AttentionMask mask = {};
  MatmulPrecision precision = MatmulPrecision::kHighest;
  const float *query = nullptr, *key = nullptr, *value = nullptr;
};

// Computes softmax(scale query . key^T) . value [matrices, queries, value_dim]. `statistics`
// [matrices, queries, 2] receives, for each query, the greatest product m and the sum of e^(product
// - m). The bits do not depend on the number of workers.
void fused_attention(const Attention& attention, float* out, float* statistics);

// Computes the gradients of the operands from the results of fused_attention() and the gradient of
// its output.
struct AttentionGradients {
  const float *out = nullptr, *statistics = nullptr, *dout = nullptr;
  float *dquery = nullptr, *dkey = nullptr, *dvalue = nullptr;
};
void fused_attention_gradient(const Attention& attention, const AttentionGradients& gradients);

}  // namespace keel::kernels
