// Attention of several heads, once query, key and value are projected.
#pragma once

#include <functional>
#include <vector>

#include <keel/layers/attention/internal/attention_inputs.h>

namespace keel {

struct HeadsOptions {
  std::vector<int> axes = {1};  // those of the steps, ascending; the others are like the batch
  double scale = 1;             // of the products of queries and keys
  Tensor mask = {};             // bool: false hides a step of the keys from one of the query
  std::function<Tensor(const Tensor&)> dropout = {};  // of the weights
};

struct HeadsResult {
  Tensor output;  // [dims of the query..., heads, dim of the value]
  Tensor scores;  // the weights before dropout: [batch..., heads, steps of the query, of the keys]
};

// query, key, value [batch, ..., heads, dim], concrete, which differ in the axes of steps and the
// dim of the value only; key and value agree in the steps. A mask of fewer axes than the scores
// lacks them before those of the steps: [batch, tq, tv] is for all heads.
HeadsResult attend(const Tensor& query, const Tensor& key, const Tensor& value,
                   const HeadsOptions& options);

// All masks of a call with one axis of steps, [batch, tq, tv] or what broadcasts to it: those of
// the query, value and key, the one given and the causal one. Empty if there is none.
Tensor mask_of_heads(const AttentionParts<TensorLike>& parts);

// The specs of a result as attention layers return it: the output alone or with the scores.
Tensors attention_results(const Tensor& output, const Tensor& scores, bool with_scores);

}  // namespace keel
