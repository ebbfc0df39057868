#include <keel/layers/attention/multi_head_attention.h>

#include <cmath>

#include <keel/layers/attention/internal/head_projection.h>
#include <keel/layers/attention/internal/heads.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/internal/variable_paths.h>
#include <keel/layers/registry.h>

namespace keel {

MultiHeadAttentionLayer::MultiHeadAttentionLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  if (options_.num_heads <= 0 || options_.key_dim <= 0 || value_dim() <= 0) {
    throw ValueError(caller(), ": num_heads, key_dim and value_dim must be positive, received ",
                     options_.num_heads, ", ", options_.key_dim, " and ", value_dim());
  }
  if (options_.output_shape) {
    for (int dim : options_.output_shape->values()) {
      if (dim > 0) continue;
      throw ValueError(caller(), ": output_shape must be positive, received ", dim);
    }
  }
  if (!(options_.dropout >= 0 && options_.dropout <= 1)) {
    throw ValueError(caller(), ": dropout must be in [0, 1], received ", options_.dropout);
  }
  check_attention_options(options_, caller());
}

Tensors MultiHeadAttentionLayer::operator()(const Tensors& inputs, const CallOptions& options) {
  const AttentionArguments arguments = {.attention_mask = options.attention_mask,
                                        .return_attention_scores = options.return_attention_scores,
                                        .use_causal_mask = options.use_causal_mask};
  return Layer::operator()(with_arguments(inputs, arguments, "", caller()),
                           {.training = options.training});
}

Tensors MultiHeadAttentionLayer::replay(const Tensors& inputs, const keel::CallOptions& options) {
  return Layer::operator()(inputs, options);
}

std::vector<Tensor> MultiHeadAttentionLayer::compute_mask(const Tensors& inputs,
                                                          const Tensors&) const {
  return {attention_parts(inputs, caller()).query.tensor().mask()};
}

std::vector<std::string> MultiHeadAttentionLayer::sublayer_attributes() const {
  std::vector<std::string> out;
  if (query_) out = {"query_dense", "key_dense", "value_dense", "output_dense"};
  // Unlike the others, Keras's gate has no public attribute.
  if (gate_) out.insert(out.begin() + 2, "_gate_dense");
  if (dropout_) out.emplace_back();
  return out;
}

Config MultiHeadAttentionLayer::get_config() const {
  Config out = without_flash_attention(to_config(options_));
  out.set("value_dim", value_dim());  // as Keras writes it
  return out;
}

Shape MultiHeadAttentionLayer::output_shape(const Shape& query) const {
  if (!options_.output_shape) return {query[-1]};
  const std::vector<int>& dims = options_.output_shape->values();
  return Shape(std::vector<int64_t>(dims.begin(), dims.end()));
}

std::vector<int> MultiHeadAttentionLayer::attention_axes(const Shape& query) const {
  std::vector<int> out;
  if (options_.attention_axes) {
    out = options_.attention_axes->normalized(query, caller());
  } else {
    for (int i = 1; i < query.rank() - 1; ++i) out.push_back(i);
  }
  if (out.front() < 1 || out.back() >= query.rank() - 1) {
    throw ValueError(caller(), ": attention_axes must not contain the first or the last axis of ",
                     query);
  }
  return out;
}

void MultiHeadAttentionLayer::build_weights(const Specs& inputs) {
  const auto parts = attention_parts(inputs, caller());
  const Shape &query = parts.query.shape, &value = parts.value.shape,
              &key = parts.key_or_value().shape;
  for (const Shape& shape : {query, value, key}) {
    if (shape.rank() >= 3 && shape.rank() == query.rank() && shape[-1] != kUnknown) continue;
    throw ValueError(
        caller(),
        ": query, value and key must have the same rank, 3 or more, and known last dimensions, ",
        "received ", query, ", ", value, " and ", key);
  }
  attention_axes(query);
  const int64_t heads = options_.num_heads;
  const Shape out = output_shape(query);
  query_ = make_projection(options_, "query", {query[-1], heads, options_.key_dim}, 1);
  key_ = make_projection(options_, "key", {key[-1], heads, options_.key_dim}, 1);
  if (options_.use_gate) {
    gate_ = make_projection(options_, "gate", {query[-1], heads, value_dim()}, 1, "sigmoid");
    (*gate_)->build(parts.query);
  }
  value_ = make_projection(options_, "value", {value[-1], heads, value_dim()}, 1);
  output_ = make_projection(options_, "attention_output", Shape{heads, value_dim()} + out, 2);
  (*query_)->build(parts.query);
  (*key_)->build(parts.key_or_value());
  (*value_)->build(parts.value);
  (*output_)->build(TensorSpec{.shape = query.drop_last() + Shape{heads, value_dim()}});
  for (const auto& projection : {query_, key_, gate_, value_, output_}) {
    if (projection) prepend_to_paths(name(), *track(*projection));
  }
  if (options_.dropout == 0) return;
  dropout_ = track(layers::Dropout(
      {.rate = options_.dropout, .seed = options_.seed, .name = "dropout", .dtype = dtype()}));
  (*dropout_)->build(parts.query);
}

Tensors MultiHeadAttentionLayer::symbolic_results(const Tensors& inputs) const {
  const auto parts = attention_parts(inputs, caller());
  const Shape query = parts.query.spec().shape, value = parts.value.spec().shape;
  const std::vector<int> axes = attention_axes(query);
  Shape scores, query_steps, value_steps;
  for (int i = 0; i < query.rank() - 1; ++i) {
    const bool attended = std::ranges::find(axes, i) != axes.end();
    if (!attended) {
      scores = scores + Shape{query[i]};
    } else {
      query_steps = query_steps + Shape{query[i]};
      value_steps = value_steps + Shape{value[i]};
    }
  }
  scores = scores + Shape{options_.num_heads} + query_steps + value_steps;
  const auto made = [&](const Shape& shape) {
    return Tensor::symbolic({.shape = shape, .dtype = dtype()});
  };
  return attention_results(made(query.drop_last() + output_shape(query)), made(scores),
                           is_set(parts.return_attention_scores));
}

Tensors MultiHeadAttentionLayer::call(const Tensors& inputs, const CallContext& context) {
  const auto parts = attention_parts(inputs, caller());
  const Shape value = parts.value.spec().shape, key = parts.key_or_value().spec().shape;
  if (!compatible(value.drop_last(), key.drop_last())) {
    throw ValueError(
        caller(),
        ": value and key must have the same shape except for the last dimension, received ", value,
        " and ", key);
  }
  if (any_symbolic(inputs)) return symbolic_results(inputs);
  const bool drops = dropout_ && context.training;
  HeadsOptions how = heads_options(options_, parts, drops, caller());
  how.axes = attention_axes(parts.query.spec().shape);
  how.scale = 1 / std::sqrt(static_cast<double>(options_.key_dim));
  if (drops) how.dropout = [this](const Tensor& weights) { return (*dropout_)(weights); };
  HeadsResult result =
      attend((*query_)(parts.query.tensor()), (*key_)(parts.key_or_value().tensor()),
             (*value_)(parts.value.tensor()), how);
  if (gate_) result.output = result.output * (*gate_)(parts.query.tensor());
  return attention_results((*output_)(result.output), result.scores,
                           is_set(parts.return_attention_scores));
}

KEEL_REGISTER(Layer, MultiHeadAttentionLayer, .package = "keras",
              .call =
                  "query, value, key, query_mask, value_mask, key_mask, attention_mask, "
                  "return_attention_scores=false, training, use_causal_mask=false",
              .ignored_keys = "query_shape=*, key_shape=*, value_shape=*")

}  // namespace keel
