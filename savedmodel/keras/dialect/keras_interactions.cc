#include <keel/savedmodel/keras/dialect/keras_interactions.h>

#include <algorithm>

#include <keel/layers/merging/merging.h>
#include <keel/layers/normalization/normalization.h>
#include <keel/layers/reshaping/padding.h>
#include <keel/layers/reshaping/reshaping.h>

namespace keel {
namespace {

std::vector<Tensor> tensors_of(const Tensors& inputs) {
  std::vector<Tensor> out;
  for (const TensorLike& input : flatten(inputs)) out.push_back(input.tensor());
  return out;
}

Tensors list_of(const std::vector<Tensor>& tensors) {
  return Tensors::list(Tensors::Items(tensors.begin(), tensors.end()));
}

}  // namespace

bool has_keras_form(const Layer& layer) {
  if (const auto* const dot = dynamic_cast<const DotInteractionLayer*>(&layer)) {
    return !dot->options().skip_gather;
  }
  return dynamic_cast<const FeatureCrossLayer*>(&layer) != nullptr;
}

bool has_keras_form_inside(const Layer& model) {
  const auto* const functional = dynamic_cast<const FunctionalModel*>(&model);
  return functional != nullptr && std::ranges::any_of(functional->layers(), [](const auto& layer) {
           return has_keras_form(*layer) || has_keras_form_inside(*layer);
         });
}

Tensor KerasInteractions::rewrite(const Layer& layer, const Tensors& inputs) {
  if (const auto* const dot = dynamic_cast<const DotInteractionLayer*>(&layer)) {
    return dot_interaction(*dot, inputs);
  }
  return feature_cross(dynamic_cast<const FeatureCrossLayer&>(layer), inputs);
}

// Row i of the lower triangle of products is the product of the vectors before i and vector i. The
// concatenated rows have the order of DotInteraction: (1,0), (2,0), (2,1), ...
Tensor KerasInteractions::dot_interaction(const DotInteractionLayer& layer, const Tensors& inputs) {
  std::vector<Tensor> vectors = tensors_of(inputs);
  Tensor stacked = vectors[0];  // [batch, n, dim]
  const bool is_stacked = vectors.size() == 1 && stacked.rank() == 3;
  const int64_t dim = stacked.shape()[-1];
  const int64_t n = is_stacked ? stacked.shape()[1] : std::ssize(vectors);
  if (!is_stacked) {
    const Tensor joined =
        n == 1 ? vectors[0]
               : layers::Concatenate({.name = name(layer, "join")})(list_of(vectors)).tensor();
    stacked = layers::Reshape({.target_shape = {n, dim}, .name = name(layer, "stack")})(joined);
  }
  const auto cropped = [&](int64_t begin, int64_t end, const std::string& part) {
    if (begin == 0 && end == n) return stacked;
    return layers::Cropping1D({.cropping = Padding1D(begin, n - end), .name = name(layer, part)})(
        stacked);
  };
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t others = layer.options().self_interaction ? i + 1 : i;
    if (others == 0) continue;
    const std::string number = std::to_string(i);
    const Tensor vector =
        is_stacked
            ? layers::Reshape({.target_shape = {dim}, .name = name(layer, "vector_" + number)})(
                  cropped(i, i + 1, "only_" + number))
            : vectors[static_cast<size_t>(i)];
    rows.push_back(layers::Dot({.axes = {2, 1}, .name = name(layer, "row_" + number)})(
                       list_of({cropped(0, others, "before_" + number), vector}))
                       .tensor());
  }
  if (rows.empty()) {
    throw ValueError("save_model for Keras: DotInteraction '", layer.name(),
                     "' has no pair of features; remove the layer");
  }
  if (rows.size() == 1) return rows[0];
  return layers::Concatenate({.name = name(layer, "pairs")})(list_of(rows)).tensor();
}

const KerasInteractions::CrossLayers& KerasInteractions::cross_layers(
    const FeatureCrossLayer& layer, const Tensor& x) {
  const auto [it, is_new] = crosses_.try_emplace(&layer);
  if (!is_new) return it->second;
  const FeatureCrossOptions& options = layer.options();
  TensorSpec spec = x.spec();
  const auto add = [&](const layers::Dense& dense, int64_t units) {
    dense->build(Specs(spec));
    spec.shape = spec.shape.with(-1, units);
    it->second.dense.push_back(dense);
  };
  if (options.projection_dim) {
    add(layers::Dense({.units = *options.projection_dim,
                       .use_bias = false,
                       .name = name(layer, "down"),
                       .trainable = layer.trainable()}),
        *options.projection_dim);
    it->second.dense.back()->kernel().assign(layer.down_kernel());
  }
  add(layers::Dense({.units = x.shape()[-1],
                     .activation = options.pre_activation,
                     .use_bias = options.use_bias,
                     .name = name(layer, "product"),
                     .trainable = layer.trainable()}),
      x.shape()[-1]);
  it->second.dense.back()->kernel().assign(layer.kernel());
  if (options.use_bias) it->second.dense.back()->bias().assign(layer.bias());
  return it->second;
}

Tensor KerasInteractions::feature_cross(const FeatureCrossLayer& layer, const Tensors& inputs) {
  const std::vector<Tensor> tensors = tensors_of(inputs);
  const Tensor& x0 = tensors.front();
  const Tensor& x = tensors.back();
  Tensor y = x;
  for (const layers::Dense& dense : cross_layers(layer, x).dense) y = dense(y);
  if (layer.options().diag_scale > 0) {
    const Tensor scaled = layers::Rescaling(
        {.scale = layer.options().diag_scale, .name = name(layer, "diagonal")})(x);
    y = layers::Add({.name = name(layer, "with_diagonal")})(list_of({y, scaled})).tensor();
  }
  y = layers::Multiply({.name = name(layer, "cross")})(list_of({x0, y})).tensor();
  return layers::Add({.name = name(layer, "residual")})(list_of({y, x})).tensor();
}

}  // namespace keel
