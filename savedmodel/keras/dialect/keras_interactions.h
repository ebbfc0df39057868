// Rewrites layers of keras_rs into layers of Keras. Private to savedmodel.
#pragma once

#include <functional>
#include <map>
#include <string>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/interaction/dot_interaction.h>
#include <keel/layers/interaction/feature_cross.h>

namespace keel {

// Returns true if the layer can be rewritten: a FeatureCross, or a DotInteraction without
// skip_gather.
bool has_keras_form(const Layer& layer);
// Returns true if a functional model, or a functional model inside it, contains such a layer.
bool has_keras_form_inside(const Layer& model);

// Rewrites the layers of one model.
class KerasInteractions {
 public:
  // `unique` returns a unique layer name for a proposed name.
  explicit KerasInteractions(std::function<std::string(std::string)> unique)
      : unique_(std::move(unique)) {}

  // Returns the result of the rewritten layer on symbolic inputs; has_keras_form(layer) must hold.
  // All calls of one FeatureCross share the weights of its rewritten form.
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
