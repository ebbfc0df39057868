// The inputs of attention layers, and masks of attention scores.
#pragma once

#include <optional>
#include <string>

#include <keel/framework/tensor_like.h>

namespace keel {

// The inputs of an attention layer, as tensors or specs. They are extracted from one of these
// structures:
//   a list [query, value] or [query, value, key]
//   a dict with the names of Keras's arguments: "query", "value" and "key", or "inputs" with the
//   list
// The dict may also contain "attention_mask", "return_attention_scores" and "use_causal_mask"; the
// last two are scalar bools. A graph thus records the options of the call together with the inputs.
template <class T>
struct AttentionParts {
  T query, value;
  std::optional<T> key = {};
  std::optional<T> attention_mask = {};
  std::optional<T> return_attention_scores = {};
  std::optional<T> use_causal_mask = {};

  // Returns the key, which defaults to the value.
  const T& key_or_value() const { return key ? *key : value; }
};

// Extracts the inputs from a structure. Throws ValueError, naming `caller`, for another structure.
AttentionParts<TensorLike> attention_parts(const Tensors& inputs, const std::string& caller);
AttentionParts<TensorSpec> attention_parts(const Specs& inputs, const std::string& caller);

// Arguments of a call other than query, value and key.
struct AttentionArguments {
  Tensor attention_mask = {};
  bool return_attention_scores = false;
  bool use_causal_mask = false;
};
// Returns the inputs as a dict with the arguments if any argument is set, else the inputs
// unchanged. `name` is the dict's key for the inputs: "inputs" for layers that take a list, or
// empty for layers that take query, value and key.
Tensors with_arguments(const Tensors& inputs, const AttentionArguments& arguments,
                       const std::string& name, const std::string& caller);

// Returns the value of a flag. It is false if the flag is missing, and if it is symbolic, which is
// the case when only specs are computed.
bool is_set(const std::optional<TensorLike>& flag);

// Returns a mask [1, rows, columns] in which row i is true up to and including column i.
Tensor causal_mask(int64_t rows, int64_t columns);
// Returns the conjunction of two masks, either of which may be empty. Masks broadcast.
Tensor both_masks(const Tensor& a, const Tensor& b);
// Returns scores reduced by 1e9 where the mask is false. The mask may be empty.
Tensor masked_scores(const Tensor& scores, const Tensor& mask);

}  // namespace keel
