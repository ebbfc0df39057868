// What attention layers are called with.
#pragma once

#include <optional>
#include <string>

#include <keel/framework/tensor_like.h>

namespace keel {

// The inputs of an attention layer, tensors or their specs. Structures that give them:
//   a list [query, value] or [query, value, key]
//   a dict by the names of Keras's arguments: "query", "value" and "key", or "inputs" with that
//   list; and further "attention_mask", "return_attention_scores" and "use_causal_mask", the last
//   two scalar bools. So graphs keep with the inputs how the layer was called.
template <class T>
struct AttentionParts {
  T query, value;
  std::optional<T> key = {};
  std::optional<T> attention_mask = {};
  std::optional<T> return_attention_scores = {};
  std::optional<T> use_causal_mask = {};

  const T& key_or_value() const { return key ? *key : value; }
};

// ValueError, naming `caller`, for another structure.
AttentionParts<TensorLike> attention_parts(const Tensors& inputs, const std::string& caller);
AttentionParts<TensorSpec> attention_parts(const Specs& inputs, const std::string& caller);

// What a call adds to the query, value and key: the inputs as a dict if anything is set. `name` is
// "inputs" for layers that take a list, or empty for those that take tensors.
struct AttentionArguments {
  Tensor attention_mask = {};
  bool return_attention_scores = false;
  bool use_causal_mask = false;
};
Tensors with_arguments(const Tensors& inputs, const AttentionArguments& arguments,
                       const std::string& name, const std::string& caller);

// False if it is missing; and if it is symbolic, as when only specs are asked for.
bool is_set(const std::optional<TensorLike>& flag);

// [1, rows, columns]: a row sees the columns up to its own number.
Tensor causal_mask(int64_t rows, int64_t columns);
// Both, or the one there is; masks broadcast.
Tensor both_masks(const Tensor& a, const Tensor& b);
// scores, 1e9 less where the mask, if there is one, is false.
Tensor masked_scores(const Tensor& scores, const Tensor& mask);

}  // namespace keel
