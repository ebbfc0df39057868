#include "layers/core/embedding.h"

#include "autodiff/ops.h"
#include "autodiff/tape.h"
#include "layers/serving/planner.h"

namespace keel {

EmbeddingLayer::EmbeddingLayer(Options options)
    : TensorLayer(kClassName, options), options_(std::move(options)) {
  if (options_.input_dim <= 0 || options_.output_dim <= 0) {
    throw ValueError("Embedding ", name(), ": input_dim and output_dim must be positive, received ",
                     options_.input_dim, " and ", options_.output_dim);
  }
  set_activity_regularizer(options_.activity_regularizer);
}

void EmbeddingLayer::build_weights(const TensorSpec&) {
  embeddings_ = add_weight({.name = "embeddings",
                            .shape = {options_.input_dim, options_.output_dim},
                            .initializer = options_.embeddings_initializer,
                            .regularizer = options_.embeddings_regularizer,
                            .constraint = options_.embeddings_constraint,
                            .dtype = dtype()});
}

std::vector<Tensor> EmbeddingLayer::compute_mask(const Tensors& inputs, const Tensors&) const {
  if (!options_.mask_zero) return {};
  const Tensor ids = inputs.tensor();
  return {ops::not_equal(ids, ops::zeros_like(ids))};
}

Tensor EmbeddingLayer::call(const Tensor& ids, const CallContext&) {
  const Tensor rows = is_floating(ids.dtype()) ? ops::cast(ids, DType::kInt64) : ids;
  return ops::gather(embeddings_.read_rows(rows), rows);
}

std::optional<PlanValues> EmbeddingLayer::plan(Planner& planner, const PlanValues& inputs) const {
  if (options_.mask_zero || planner.spec(inputs.leaf()).layout != Layout::kDense) return {};
  const NoGradient pause;
  const std::optional<PlanValue> out = planner.look_up(
      {.who = "Embedding " + name(), .table = embeddings_.read(), .ids = inputs.leaf()});
  if (!out) return {};
  return *out;
}

}  // namespace keel
