#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/base/parallel.h>
#include <keel/layers/embedding/internal/backend.h>
#include <keel/layers/embedding/tables/internal/bags.h>

namespace keel {
namespace {

// Returns the values of the weights that tapes watch, by feature; empty if there are none.
std::vector<Tensor> trained_weights(const Tensors& features, const FeatureWeights& weights) {
  if (!weights || !GradientTape::any_active()) return {};
  assert_same_structure(features, *weights);
  std::vector<Tensor> out;
  bool any = false;
  for (const std::optional<TensorLike>& w : flatten(*weights)) {
    const bool trains = w && w->layout() != Layout::kDense && GradientTape::watches(w->values());
    out.push_back(trains ? w->values() : Tensor());
    any = any || trains;
  }
  return any ? out : std::vector<Tensor>();
}

}  // namespace

TPUEmbeddingLayer::EngineBackend::EngineBackend(const TableSet& tables,
                                                const Nest<FeatureConfig>& config,
                                                EngineSessionOptions options)
    : Backend(tables), session_(tables, config, std::move(options)) {}

std::vector<Variable> TPUEmbeddingLayer::EngineBackend::build(
    const std::vector<Shape>& output_shapes) {
  session_.build(output_shapes);
  virtual_variable_ = Variable::virtual_trainable("tpu_embedding_helper_dummy");
  return {virtual_variable_};
}

void TPUEmbeddingLayer::EngineBackend::check_strategy() const { session_.check_strategy(); }

// With one worker, no thread could overlap the work with the step.
bool TPUEmbeddingLayer::EngineBackend::supports_prefetch() const { return num_workers() > 1; }

void TPUEmbeddingLayer::EngineBackend::prefetch(const Tensors& features,
                                                const FeatureWeights& weights) {
  session_.prefetch(features, weights);
}

Tensors TPUEmbeddingLayer::EngineBackend::lookup(const Tensors& features,
                                                 const FeatureWeights& weights,
                                                 const Nest<FeatureConfig>& config) {
  if (any_symbolic(features)) {
    assert_same_structure(config, features);
    const std::vector<FeatureConfig> configs = flatten(config);
    size_t f = 0;
    return map_structure(features, [&](const TensorLike& input) -> TensorLike {
      const size_t i = f++;
      const Shape shape = bags_output_shape(session_.paths()[i], configs[i], input.spec(), true);
      return Tensor::symbolic(
          {.shape = shape + Shape{configs[i].table->dim}, .dtype = DType::kFloat32});
    });
  }
  // Only a lookup that a tape records can be followed by an update.
  const bool training = GradientTape::any_active();
  // Weights with a gradient need the rows of single positions. Pooling them is an operation of its
  // own, so that computing the gradient of weights alone does not update the tables.
  const std::vector<Tensor> trained = trained_weights(features, weights);
  std::vector<bool> by_position;
  for (const Tensor& w : trained) by_position.push_back(static_cast<bool>(w));
  std::vector<std::optional<PositionPool>> unpooled;
  std::vector<Tensor> values = custom_gradient({virtual_variable_.read()}, [&] {
    EngineSession::Lookup found = session_.lookup(features, weights, training, by_position);
    unpooled = std::move(found.unpooled);
    return WithBackward{std::move(found.activations),
                        [session = session_,
                         ticket = std::move(found.ticket)](std::span<const Gradient> dy) mutable {
                          std::vector<Tensor> gradients;
                          for (const Gradient& g : dy) {
                            gradients.push_back(g ? g.dense() : Tensor());
                          }
                          // The engine updates the tables here. The gradient of the virtual
                          // variable itself is a placeholder.
                          session.apply(ticket, std::move(gradients));
                          return std::vector<Gradient>{Tensor::zeros({1})};
                        }};
  });
  for (size_t f = 0; f < trained.size(); ++f) {
    if (!unpooled[f]) continue;
    const Shape shape = unpooled[f]->output_shape() + Shape{values[f].dim(1)};
    values[f] = ops::reshape(pool_positions(std::move(*unpooled[f]), values[f], trained[f]), shape);
  }
  return map_structure(pack_sequence_as(config, values),
                       [](const Tensor& t) -> TensorLike { return t; });
}

Tensor TPUEmbeddingLayer::EngineBackend::read(int table) const { return session_.read(table, 0); }

void TPUEmbeddingLayer::EngineBackend::write(int table, const Tensor& values) {
  session_.write(table, 0, values);
}

std::vector<StateEntry> TPUEmbeddingLayer::EngineBackend::state_entries() const {
  return session_.state_entries();
}

IdCounts TPUEmbeddingLayer::EngineBackend::invalid_ids(size_t feature) const {
  return session_.invalid_ids(feature);
}

}  // namespace keel
