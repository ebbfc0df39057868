// Multi-head attention after the projection of query, key and value.
#pragma once

#include <functional>
#include <vector>

#include <keel/layers/attention/internal/attention_inputs.h>

namespace keel {

// Options of attend().
struct HeadsOptions {
  std::vector<int> axes = {1};  // axes of the steps, ascending; others are batch axes
  double scale = 1;             // factor of the products of queries and keys
  Tensor mask = {};             // bool: false excludes a key step for a query step
  std::function<Tensor(const Tensor&)> dropout = {};  // applied to the weights
};

// The result of attend().
struct HeadsResult {
  Tensor output;  // [dims of query..., heads, dim of value]
  Tensor scores;  // weights before dropout: [batch..., heads, query steps, key steps]
};

// Computes multi-head attention of concrete tensors query, key and value [batch, ..., heads, dim].
// They may differ only in the axes of the steps and in the dim of the value; key and value have the
// same steps. If the mask has fewer axes than the scores, axes are inserted before those of the
// steps: a mask [batch, tq, tv] applies to all heads.
HeadsResult attend(const Tensor& query, const Tensor& key, const Tensor& value,
                   const HeadsOptions& options);

// Combines all masks of a call with one axis of steps: the masks of query, value and key, the given
// mask and the causal mask. The result has a shape that broadcasts to [batch, tq, tv]. It is empty
// if there is no mask.
Tensor mask_of_heads(const AttentionParts<TensorLike>& parts);

// Returns the result of an attention layer: the output alone, or the tuple of output and scores.
Tensors attention_results(const Tensor& output, const Tensor& scores, bool with_scores);

}  // namespace keel
