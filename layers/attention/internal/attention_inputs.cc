#include <keel/layers/attention/internal/attention_inputs.h>

#include <keel/autodiff/ops.h>

namespace keel {
namespace {

template <class T>
AttentionParts<T> parts_of_list(const Nest<T>& inputs, const std::string& caller) {
  const size_t count = inputs.is_sequence() ? inputs.items().size() : 0;
  if (count != 2 && count != 3) {
    throw ValueError(caller,
                     ": inputs must be a list [query, value] or [query, value, key], received ",
                     inputs.structure());
  }
  AttentionParts<T> out = {.query = inputs[0].leaf(), .value = inputs[1].leaf()};
  if (count == 3) out.key = inputs[2].leaf();
  return out;
}

template <class T>
AttentionParts<T> parts_of(const Nest<T>& inputs, const std::string& caller) {
  if (!inputs.is_dict()) return parts_of_list(inputs, caller);
  const auto& entries = inputs.entries();
  const auto find = [&](const char* key) -> std::optional<T> {
    const auto it = entries.find(key);
    return it == entries.end() ? std::optional<T>() : it->second.leaf();
  };
  AttentionParts<T> out = [&]() -> AttentionParts<T> {
    const auto list = entries.find("inputs");
    if (list != entries.end()) return parts_of_list(list->second, caller);
    const auto query = find("query"), value = find("value");
    if (!query || !value) {
      throw ValueError(caller, ": the dict of inputs must contain a query and a value, received ",
                       inputs.structure());
    }
    return {.query = *query, .value = *value, .key = find("key")};
  }();
  out.attention_mask = find("attention_mask");
  out.return_attention_scores = find("return_attention_scores");
  out.use_causal_mask = find("use_causal_mask");
  return out;
}

}  // namespace

AttentionParts<TensorLike> attention_parts(const Tensors& inputs, const std::string& caller) {
  return parts_of(inputs, caller);
}

AttentionParts<TensorSpec> attention_parts(const Specs& inputs, const std::string& caller) {
  return parts_of(inputs, caller);
}

Tensors with_arguments(const Tensors& inputs, const AttentionArguments& arguments,
                       const std::string& name, const std::string& caller) {
  const bool plain =
      !arguments.attention_mask && !arguments.return_attention_scores && !arguments.use_causal_mask;
  if (plain) return inputs;
  Tensors::Dict out;
  if (inputs.is_dict()) {
    out = inputs.entries();
  } else if (!name.empty()) {
    out.emplace(name, inputs);
  } else {
    const AttentionParts<TensorLike> parts = attention_parts(inputs, caller);
    out.emplace("query", parts.query);
    out.emplace("value", parts.value);
    if (parts.key) out.emplace("key", *parts.key);
  }
  if (arguments.attention_mask) out.insert_or_assign("attention_mask", arguments.attention_mask);
  const Tensor yes = Tensor::scalar(true);
  if (arguments.return_attention_scores) out.insert_or_assign("return_attention_scores", yes);
  if (arguments.use_causal_mask) out.insert_or_assign("use_causal_mask", yes);
  return out;
}

bool is_set(const std::optional<TensorLike>& flag) {
  return flag && !flag->is_symbolic() && flag->tensor().item<bool>();
}

Tensor causal_mask(int64_t rows, int64_t columns) {
  Tensor out = Tensor::uninitialized({1, rows, columns}, DType::kBool);
  const auto values = out.mutable_data<bool>();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) values[i * columns + j] = j <= i;
  }
  return out;
}

Tensor both_masks(const Tensor& a, const Tensor& b) {
  if (!a) return b;
  return b ? ops::logical_and(a, b) : a;
}

Tensor masked_scores(const Tensor& scores, const Tensor& mask) {
  if (!mask) return scores;
  const Tensor hidden = ops::cast(ops::logical_not(mask), scores.dtype());
  return scores - hidden * 1e9;
}

}  // namespace keel
