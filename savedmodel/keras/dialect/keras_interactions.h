// KerasInteractions replaces layers of keras_rs by layers of Keras. Private to savedmodel.
#pragma once

#include <functional>
#include <map>
#include <string>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/interaction/interaction.h>

namespace keel {

// Returns true if the layer can be replaced: a FeatureCross, or a DotInteraction without
// skip_gather.
bool has_keras_form(const Layer& layer);
// Returns true if any layer of a functional model, at any depth of nesting, can be replaced.
bool has_keras_form_inside(const Layer& model);

// Replaces the layers of one model.
class KerasInteractions {
 public:
  // `unique` converts a proposed layer name to one that is not used yet.
  explicit KerasInteractions(std::function<std::string(std::string)> unique)
      : unique_(std::move(unique)) {}

  // Applies the replacement of a layer, for which has_keras_form() must be true, to symbolic
  // inputs. All calls of one FeatureCross share the weights of its replacement.
  Tensor rewrite(const Layer& layer, const Tensors& inputs);

 private:
  struct CrossLayers {
    std::vector<layers::Dense> dense;  // one, or two with projection_dim
  };
  Tensor dot_interaction(const DotInteractionLayer& layer, const Tensors& inputs);
  Tensor feature_cross(const FeatureCrossLayer& layer, const Tensors& inputs);
  const CrossLayers& cross_layers(const FeatureCrossLayer& layer, const Tensor& x);
  std::string name(const Layer& layer, const std::string& part) {
    return unique_(layer.name() + "_" + part);
  }

  const std::function<std::string(std::string)> unique_;
  std::map<const Layer*, CrossLayers> crosses_;
};

}  // namespace keel
