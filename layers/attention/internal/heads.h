// Multi-head attention after the projection of query, key and value.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/attention/internal/attention_inputs.h>

namespace keel {

// Options of attend().
struct HeadsOptions {
  std::vector<int> axes = {1};  // axes of the steps, ascending; others are batch axes
  double scale = 1;             // factor of the products of queries and keys
  Tensor mask = {};             // bool: false excludes a key step for a query step
  bool causal = false;          // excludes key steps after the query step
  int64_t window = 0;           // if positive, excludes key steps that are so far away or farther
  // For a query step whose key steps are all excluded: true attends as if there were no mask, as
  // Keras does where it computes scores; false attends to all steps equally, as its fused attention
  // does.
  bool ignores_empty_masks = false;
  // Whether to use ops::attention(), which returns no scores; unset: where it is faster.
  std::optional<bool> fused = {};
  std::function<Tensor(const Tensor&)> dropout = {};  // applied to the weights
};

// The result of attend().
struct HeadsResult {
  Tensor output;  // [dims of query..., heads, dim of value]
  Tensor scores;  // weights before dropout: [batch..., heads, query steps, key steps]; or empty
};

// Computes multi-head attention of concrete tensors query, key and value [batch, ..., heads, dim].
// They may differ only in the axes of the steps and in the dim of the value; key and value have the
// same steps. If the mask has fewer axes than the scores, axes are inserted before those of the
// steps: a mask [batch, tq, tv] applies to all heads.
HeadsResult attend(const Tensor& query, const Tensor& key, const Tensor& value,
                   const HeadsOptions& options);

// Returns how a layer attends: its options that HeadsOptions has too, and the masks of a call.
// Throws ValueError if flash_attention is set for a call that returns the scores.
template <class Options>
HeadsOptions heads_options(const Options& options, const AttentionParts<TensorLike>& parts,
                           bool drops, const std::string& caller);

// Combines the masks of query, value and key and the given mask, with one axis of steps. The result
// has a shape that broadcasts to [batch, tq, tv]. It is empty if there is no mask.
Tensor mask_of_heads(const AttentionParts<TensorLike>& parts);

template <class Options>
HeadsOptions heads_options(const Options& options, const AttentionParts<TensorLike>& parts,
                           bool drops, const std::string& caller) {
  const bool with_scores = is_set(parts.return_attention_scores);
  if (with_scores && options.flash_attention.value_or(false)) {
    throw ValueError(caller, ": flash_attention does not compute the scores that ",
                     "return_attention_scores asks for; set one of them to false");
  }
  HeadsOptions out = {.mask = mask_of_heads(parts),
                      .causal = is_set(parts.use_causal_mask),
                      .window = options.sliding_window.value_or(0),
                      .ignores_empty_masks = with_scores || drops,
                      .fused = options.flash_attention};
  if (with_scores || drops) out.fused = false;
  return out;
}

// Throws ValueError, with `caller`, unless the options of the masks and of dropout fit together.
template <class Options>
void check_attention_options(const Options& options, const std::string& caller) {
  if (options.sliding_window && *options.sliding_window < 1) {
    throw ValueError(caller, ": sliding_window must be positive, received ",
                     *options.sliding_window);
  }
  if (options.flash_attention.value_or(false) && options.dropout > 0) {
    throw ValueError(caller, ": flash_attention does not support dropout, received dropout ",
                     options.dropout, "; set one of them to its default");
  }
}

// Returns the result of an attention layer: the output alone, or the tuple of output and scores.
Tensors attention_results(const Tensor& output, const Tensor& scores, bool with_scores);

}  // namespace keel
