#include <keel/layers/attention/grouped_query_attention.h>

#include <cmath>

#include <keel/autodiff/ops.h>
#include <keel/layers/attention/internal/head_projection.h>
#include <keel/layers/attention/internal/heads.h>
#include <keel/layers/internal/variable_paths.h>
#include <keel/layers/registry.h>

namespace keel {

GroupedQueryAttentionLayer::GroupedQueryAttentionLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  const int64_t heads = options_.num_query_heads, groups = options_.num_key_value_heads;
  if (options_.head_dim <= 0 || heads <= 0 || groups <= 0) {
    throw ValueError(caller(), ": head_dim, num_query_heads and num_key_value_heads must be ",
                     "positive, received ", options_.head_dim, ", ", heads, " and ", groups);
  }
  if (heads % groups != 0) {
    throw ValueError(caller(), ": num_key_value_heads must divide num_query_heads, received ",
                     groups, " and ", heads);
  }
  if (!(options_.dropout >= 0 && options_.dropout <= 1)) {
    throw ValueError(caller(), ": dropout must be in [0, 1], received ", options_.dropout);
  }
  check_attention_options(options_, caller());
}

Tensors GroupedQueryAttentionLayer::operator()(const Tensors& inputs, const CallOptions& options) {
  const AttentionArguments arguments = {.attention_mask = options.attention_mask,
                                        .return_attention_scores = options.return_attention_scores,
                                        .use_causal_mask = options.use_causal_mask};
  return Layer::operator()(with_arguments(inputs, arguments, "", caller()),
                           {.training = options.training});
}

Tensors GroupedQueryAttentionLayer::replay(const Tensors& inputs,
                                           const keel::CallOptions& options) {
  return Layer::operator()(inputs, options);
}

std::vector<Tensor> GroupedQueryAttentionLayer::compute_mask(const Tensors& inputs,
                                                             const Tensors&) const {
  return {attention_parts(inputs, caller()).query.tensor().mask()};
}

std::vector<std::string> GroupedQueryAttentionLayer::sublayer_attributes() const {
  std::vector<std::string> out;
  if (query_) out = {"_query_dense", "_key_dense", "_value_dense", "_output_dense"};
  if (gate_) out.insert(out.begin() + 2, "_gate_dense");
  if (dropout_) out.emplace_back();
  return out;
}

void GroupedQueryAttentionLayer::build_weights(const Specs& inputs) {
  const auto parts = attention_parts(inputs, caller());
  const Shape &query = parts.query.shape, &value = parts.value.shape,
              &key = parts.key_or_value().shape;
  for (const Shape& shape : {query, value, key}) {
    if (shape.rank() == 3 && shape[-1] != kUnknown) continue;
    throw ValueError(
        caller(), ": query, value and key must be [batch, steps, dim] with known last dimensions, ",
        "received ", query, ", ", value, " and ", key);
  }
  const int64_t heads = options_.num_query_heads, groups = options_.num_key_value_heads;
  const int64_t dim = options_.head_dim;
  query_ = make_projection(options_, "query", {query[-1], heads, dim}, 1);
  key_ = make_projection(options_, "key", {key[-1], groups, dim}, 1);
  if (options_.use_gate) {
    gate_ = make_projection(options_, "gate", {query[-1], heads, dim}, 1, "sigmoid");
    (*gate_)->build(parts.query);
  }
  value_ = make_projection(options_, "value", {value[-1], groups, dim}, 1);
  output_ = make_projection(options_, "attention_output", {heads, dim, query[-1]}, 2);
  (*query_)->build(parts.query);
  (*key_)->build(parts.key_or_value());
  (*value_)->build(parts.value);
  (*output_)->build(TensorSpec{.shape = query.drop_last() + Shape{heads, dim}});
  for (const auto& projection : {query_, key_, gate_, value_, output_}) {
    if (projection) prepend_to_paths(name(), *track(*projection));
  }
  if (options_.dropout == 0) return;
  dropout_ = track(layers::Dropout(
      {.rate = options_.dropout, .seed = options_.seed, .name = "dropout", .dtype = dtype()}));
  (*dropout_)->build(parts.query);
}

// Repeats each key or value head for its group: [batch, steps, groups, dim] -> [batch, steps,
// heads, dim].
Tensor GroupedQueryAttentionLayer::repeated(const Tensor& heads) const {
  const int64_t times = options_.num_query_heads / options_.num_key_value_heads;
  if (times == 1) return heads;
  const Shape& shape = heads.shape();
  const Tensor copies = ops::broadcast_to(ops::expand_dims(heads, 3), shape.inserted(3, times));
  return ops::reshape(copies, shape.with(2, options_.num_query_heads));
}

Tensors GroupedQueryAttentionLayer::call(const Tensors& inputs, const CallContext& context) {
  const auto parts = attention_parts(inputs, caller());
  const Shape query = parts.query.spec().shape, value = parts.value.spec().shape;
  const bool with_scores = is_set(parts.return_attention_scores);
  if (any_symbolic(inputs)) {
    const Shape scores = {query[0], options_.num_query_heads, query[1], value[1]};
    return attention_results(Tensor::symbolic({.shape = query, .dtype = dtype()}),
                             Tensor::symbolic({.shape = scores, .dtype = dtype()}), with_scores);
  }
  const bool drops = dropout_ && context.training;
  HeadsOptions how = heads_options(options_, parts, drops, caller());
  how.scale = 1 / std::sqrt(static_cast<double>(options_.head_dim));
  if (drops) how.dropout = [this](const Tensor& weights) { return (*dropout_)(weights); };
  HeadsResult result =
      attend((*query_)(parts.query.tensor()), repeated((*key_)(parts.key_or_value().tensor())),
             repeated((*value_)(parts.value.tensor())), how);
  if (gate_) result.output = result.output * (*gate_)(parts.query.tensor());
  return attention_results((*output_)(result.output), result.scores, with_scores);
}

KEEL_REGISTER(Layer, GroupedQueryAttentionLayer, .package = "keras",
              .call =
                  "query, value, key, query_mask, value_mask, key_mask, attention_mask, "
                  "return_attention_scores=false, training, use_causal_mask=false")

}  // namespace keel
