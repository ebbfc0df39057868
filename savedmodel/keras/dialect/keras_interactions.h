// Layers of keras_rs rewritten into layers of Keras. Private to savedmodel.
#pragma once

#include <functional>
#include <map>
#include <string>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/interaction/dot_interaction.h>
#include <keel/layers/interaction/feature_cross.h>

namespace keel {

// Whether the layer is rewritten: a FeatureCross, or a DotInteraction without skip_gather.
bool has_keras_form(const Layer& layer);
// Whether any layer of a functional model, or of a functional model in it, is.
bool has_keras_form_inside(const Layer& model);

class KerasInteractions {
 public:
  // `unique` makes a layer name of a proposal.
  explicit KerasInteractions(std::function<std::string(std::string)> unique)
      : unique_(std::move(unique)) {}

  // The result of a layer with has_keras_form on symbolic inputs. All calls of one FeatureCross
  // share the weights of its rewritten form.
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
