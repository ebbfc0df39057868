#include <keel/layers/embedding/position_weights.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

// Returns the position of each value in its row, as int64.
Tensor positions_of(const TensorLike& ids) {
  Tensor out = Tensor::uninitialized({ids.values().size()}, DType::kInt64);
  const auto to = out.mutable_data<int64_t>();
  if (ids.layout() == Layout::kSparse) {
    const auto indices = ids.sparse().indices.data<int64_t>();
    for (size_t i = 0; i < to.size(); ++i) to[i] = indices[2 * i + 1];
    return out;
  }
  const auto splits = ids.ragged().row_splits.data<int64_t>();
  for (size_t row = 0; row + 1 < splits.size(); ++row) {
    for (int64_t p = splits[row]; p < splits[row + 1]; ++p) to[p] = p - splits[row];
  }
  return out;
}

}  // namespace

PositionWeightsLayer::PositionWeightsLayer(Options options)
    : Layer(kClassName, options), options_(std::move(options)) {
  if (options_.max_length <= 0) {
    throw ValueError("PositionWeights ", name(), ": max_length must be positive, received ",
                     options_.max_length);
  }
}

void PositionWeightsLayer::build_weights(const Specs&) {
  weights_ = add_weight({.name = "position_weights",
                         .shape = {options_.max_length},
                         .initializer = options_.initializer,
                         .regularizer = options_.regularizer,
                         .dtype = DType::kFloat32});
}

Tensors PositionWeightsLayer::call(const Tensors& inputs, const CallContext&) {
  const TensorLike& ids = inputs.leaf();
  TensorSpec spec = ids.spec();
  if (ids.layout() == Layout::kDense || spec.shape.rank() != 2) {
    throw ValueError("PositionWeights ", name(),
                     ": the input must be sparse or ragged and have rank 2, received ",
                     ids.layout() == Layout::kDense ? "a dense tensor of shape " : "shape ",
                     spec.shape);
  }
  if (ids.is_symbolic()) {
    spec.dtype = DType::kFloat32;
    return make_symbolic(spec, nullptr, 0);
  }
  if (ids.layout() == Layout::kRagged) ids.ragged().validate("PositionWeights " + name());
  if (ids.layout() == Layout::kSparse) ids.sparse().validate("PositionWeights " + name());
  Tensor positions = positions_of(ids);
  Tensor inside = Tensor::full<float>(positions.shape(), 1.0F);
  bool all_inside = true;
  const auto at = positions.mutable_data<int64_t>();
  const auto factors = inside.mutable_data<float>();
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] < options_.max_length) continue;
    at[i] = 0;
    factors[i] = 0;
    all_inside = false;
  }
  Tensor values = ops::gather(weights_.read(), positions);
  if (!all_inside) values = values * inside;
  if (ids.layout() == Layout::kRagged) {
    return TensorLike(RaggedTensor{.values = values, .row_splits = ids.ragged().row_splits});
  }
  SparseTensor out = ids.sparse();
  out.values = values;
  return TensorLike(std::move(out));
}

KEEL_REGISTER(Layer, PositionWeightsLayer)

}  // namespace keel
