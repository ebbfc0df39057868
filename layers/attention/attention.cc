#include <keel/layers/attention/attention.h>

#include <keel/layers/attention/internal/attention_inputs.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

// Returns query + key for all pairs of steps, [batch, tq, tv, dim].
Tensor sums_of_pairs(const Tensor& query, const Tensor& key) {
  return ops::expand_dims(query, 2) + ops::expand_dims(key, 1);
}

}  // namespace

void AttentionBase::make_dropout(double rate, std::optional<int64_t> seed) {
  if (!(rate >= 0 && rate <= 1)) {
    throw ValueError(caller(), ": dropout must be in [0, 1], received ", rate);
  }
  if (rate == 0) return;
  dropout_ =
      track(layers::Dropout({.rate = rate, .seed = seed, .name = "dropout", .dtype = dtype()}));
}

Tensors AttentionBase::operator()(const Tensors& inputs, const CallOptions& options) {
  const AttentionArguments arguments = {.attention_mask = {},
                                        .return_attention_scores = options.return_attention_scores,
                                        .use_causal_mask = options.use_causal_mask};
  return Layer::operator()(with_arguments(inputs, arguments, "inputs", caller()),
                           {.training = options.training});
}

Tensors AttentionBase::replay(const Tensors& inputs, const keel::CallOptions& options) {
  return Layer::operator()(inputs, options);
}

std::vector<Tensor> AttentionBase::compute_mask(const Tensors& inputs, const Tensors&) const {
  return {attention_parts(inputs, caller()).query.tensor().mask()};
}

void AttentionBase::build_weights(const Specs& inputs) {
  const auto parts = attention_parts(inputs, caller());
  for (const TensorSpec& spec : {parts.query, parts.value, parts.key_or_value()}) {
    if (spec.shape.rank() == 3) continue;
    throw ValueError(caller(), ": query, value and key must be [batch, steps, dim], received ",
                     spec.shape);
  }
  if (dropout_) (*dropout_)->build(parts.query);
}

Tensors AttentionBase::call(const Tensors& inputs, const CallContext&) {
  const auto parts = attention_parts(inputs, caller());
  const Tensor query = as_dtype(parts.query.tensor(), dtype());
  const Tensor value = as_dtype(parts.value.tensor(), dtype());
  const Tensor key = as_dtype(parts.key_or_value().tensor(), dtype());
  const Tensor query_mask = parts.query.tensor().mask(), value_mask = parts.value.tensor().mask();

  Tensor weights = scores(query, key);
  Tensor mask = value_mask ? ops::expand_dims(value_mask, 1) : Tensor();
  if (is_set(parts.use_causal_mask) && !weights.is_symbolic()) {
    mask = both_masks(mask, causal_mask(weights.dim(1), weights.dim(2)));
  }
  weights = ops::softmax(masked_scores(weights, mask));
  if (dropout_) weights = (*dropout_)(weights);
  Tensor output = ops::matmul(weights, value);
  if (query_mask) output = output * ops::cast(ops::expand_dims(query_mask, 2), dtype());
  if (!is_set(parts.return_attention_scores)) return output;
  return Tensors::tuple({output, weights});
}

AttentionLayer::AttentionLayer(Options options)
    : AttentionBase(kClassName, options), options_(std::move(options)) {
  if (options_.score_mode != "dot" && options_.score_mode != "concat") {
    throw ValueError(caller(), ": score_mode must be dot or concat, received '",
                     options_.score_mode, "'");
  }
}

void AttentionLayer::build_weights(const Specs& inputs) {
  AttentionBase::build_weights(inputs);
  if (options_.use_scale) {
    scale_ = add_weight({.name = "scale", .initializer = "ones", .dtype = dtype()});
  }
  if (options_.score_mode == "concat") {
    concat_score_weight_ =
        add_weight({.name = "concat_score_weight", .initializer = "ones", .dtype = dtype()});
  }
}

Tensor AttentionLayer::scores(const Tensor& query, const Tensor& key) const {
  if (options_.score_mode == "dot") {
    const Tensor products = ops::matmul(query, key, false, true);
    return options_.use_scale ? products * scale_ : products;
  }
  const Tensor sums = sums_of_pairs(query, key);
  const Tensor scaled = options_.use_scale ? sums * scale_ : sums;
  return concat_score_weight_ * ops::sum(ops::tanh(scaled), {-1});
}

void AdditiveAttentionLayer::build_weights(const Specs& inputs) {
  AttentionBase::build_weights(inputs);
  if (!options_.use_scale) return;
  const Shape query = attention_parts(inputs, caller()).query.shape;
  if (query[2] == kUnknown) {
    throw ValueError(caller(), ": the last dimension of the query must be known, received ", query);
  }
  scale_ = add_weight({.name = "scale", .shape = {query[2]}, .dtype = dtype()});
}

Tensor AdditiveAttentionLayer::scores(const Tensor& query, const Tensor& key) const {
  const Tensor answers = ops::tanh(sums_of_pairs(query, key));
  return ops::sum(options_.use_scale ? answers * scale_ : answers, {-1});
}

KEEL_REGISTER(
    Layer, AdditiveAttentionLayer, .package = "keras",
    .call = "inputs, mask, training, return_attention_scores=false, use_causal_mask=false",
    .ignored_keys = "causal=false")
KEEL_REGISTER(
    Layer, AttentionLayer, .package = "keras",
    .call = "inputs, mask, training, return_attention_scores=false, use_causal_mask=false",
    .ignored_keys = "causal=false")

}  // namespace keel
