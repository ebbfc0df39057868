// clone_model: makes a model of the same structure with new weights (keras.models.clone_model).
#pragma once

#include <functional>

#include <keel/layers/training/model.h>

namespace keel {

// Options of clone_model().
struct CloneModelOptions {
  // Symbolic tensors to build the clone on, in the structure of the model's inputs. Default: new
  // inputs of the same specs and names. For Functional and Sequential models.
  Tensors input_tensors = {};
  // Returns the layer that replaces a layer, which may be the same one to share it. Not called for
  // InputLayers. Default: a layer made from the config of the original. For Functional and
  // Sequential models.
  std::function<LayerHandle<Layer>(const LayerHandle<Layer>& layer)> clone_function = {};
  // Calls a new layer on its inputs, so that it can add other layers before or after it. Default:
  // layer(inputs, options). For Functional models.
  std::function<Tensors(const LayerHandle<Layer>& layer, const Tensors& inputs,
                        const CallOptions& options)>
      call_function = {};
  // If true, applies clone_function to the layers of nested Functional and Sequential models
  // instead of to these models.
  bool recursive = false;
};

// Returns a new model with the structure of `model` and new weights, which is not compiled. Layers
// that the model calls several times are cloned once. A model that is neither Functional nor
// Sequential is made from its config.
//
// Throws ValueError if another model is given options or a Sequential a call_function, and if
// input_tensors do not fit. Throws NotImplementedError if a layer has no config.
ModelHandle clone_model(const Model& model, const CloneModelOptions& options = {});
// Does the same for a handle.
inline ModelHandle clone_model(const ModelHandle& model, const CloneModelOptions& options = {}) {
  return clone_model(*model, options);
}

}  // namespace keel
