#include <keel/layers/core/reversible_embedding.h>

#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

// The input of a call, and whether it is to be projected.
struct Arguments {
  Tensor x;
  bool reverse = false;
};

Arguments arguments_of(const Tensors& inputs, const std::string& caller) {
  if (inputs.is_leaf()) return {.x = inputs.tensor()};
  if (!inputs.is_dict() || !inputs.entries().contains("inputs")) {
    throw ValueError(caller, ": the input must be a tensor, or a dict of 'inputs' and 'reverse', ",
                     "received ", inputs.structure());
  }
  Arguments out = {.x = inputs["inputs"].tensor()};
  if (!inputs.entries().contains("reverse")) return out;
  // The flag has no value while only specs are computed.
  const Tensor reverse = inputs["reverse"].tensor();
  out.reverse = !reverse.is_symbolic() && reverse.item<bool>();
  return out;
}

}  // namespace

ReversibleEmbeddingLayer::ReversibleEmbeddingLayer(Options options)
    : Layer(kClassName, options), options_(std::move(options)) {
  if (options_.input_dim <= 0 || options_.output_dim <= 0) {
    throw ValueError(caller(), ": input_dim and output_dim must be positive, received ",
                     options_.input_dim, " and ", options_.output_dim);
  }
  if (options_.logit_soft_cap && !(*options_.logit_soft_cap > 0)) {
    throw ValueError(caller(), ": logit_soft_cap must be positive, received ",
                     *options_.logit_soft_cap);
  }
  if (options_.reverse_dtype && !is_floating(*options_.reverse_dtype)) {
    throw ValueError(caller(), ": reverse_dtype must be float32 or float64, received ",
                     *options_.reverse_dtype);
  }
  set_activity_regularizer(options_.activity_regularizer);
}

Tensors ReversibleEmbeddingLayer::operator()(const Tensors& inputs, const CallOptions& options) {
  const Tensors all = options.reverse
                          ? Tensors::dict({{"inputs", inputs}, {"reverse", Tensor::scalar(true)}})
                          : inputs;
  return Layer::operator()(all, {.training = options.training});
}

Tensor ReversibleEmbeddingLayer::operator()(const Tensor& input, const CallOptions& options) {
  return (*this)(Tensors(input), options).tensor();
}

Tensors ReversibleEmbeddingLayer::replay(const Tensors& inputs, const keel::CallOptions& options) {
  return Layer::operator()(inputs, options);
}

void ReversibleEmbeddingLayer::build_weights(const Specs&) {
  embeddings_ = add_weight({.name = "embeddings",
                            .shape = {options_.input_dim, options_.output_dim},
                            .initializer = options_.embeddings_initializer,
                            .regularizer = options_.embeddings_regularizer,
                            .constraint = options_.embeddings_constraint,
                            .dtype = dtype()});
  if (options_.tie_weights) return;
  reverse_embeddings_ = add_weight({.name = "reverse_embeddings",
                                    .shape = {options_.output_dim, options_.input_dim},
                                    .initializer = options_.embeddings_initializer,
                                    .dtype = dtype()});
}

std::vector<Tensor> ReversibleEmbeddingLayer::compute_mask(const Tensors& inputs,
                                                           const Tensors&) const {
  const Arguments given = arguments_of(inputs, caller());
  if (!options_.mask_zero || given.reverse) return {};
  return {ops::not_equal(given.x, ops::zeros_like(given.x))};
}

Tensor ReversibleEmbeddingLayer::project(const Tensor& x) const {
  const DType type = options_.reverse_dtype.value_or(dtype());
  const Tensor kernel = as_dtype(options_.tie_weights ? embeddings_ : reverse_embeddings_, type);
  const Tensor logits = ops::matmul(as_dtype(x, type), kernel, false, options_.tie_weights);
  if (!options_.logit_soft_cap) return logits;
  const double cap = *options_.logit_soft_cap;
  return ops::tanh(logits / cap) * cap;
}

Tensors ReversibleEmbeddingLayer::call(const Tensors& inputs, const CallContext&) {
  const Arguments given = arguments_of(inputs, caller());
  if (given.reverse) return project(given.x);
  const Tensor ids = as_ids("ReversibleEmbedding", name(), given.x);
  // Only the rows that are looked up need to be up to date.
  return ops::gather(embeddings_.read_rows(ids), ids);
}

KEEL_REGISTER(
    Layer, ReversibleEmbeddingLayer, .package = "keras", .call = "inputs, reverse=false",
    .ignored_keys = "input_length=*, lora_rank=null, lora_alpha=null, quantization_config=null")

}  // namespace keel
