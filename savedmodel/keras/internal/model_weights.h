// The weights of a model in the order and with the names of Keras's files.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>

namespace keel {

// A weight and its name in a file.
struct NamedWeight {
  std::string name;  // within the group of the layer: "dense/kernel:0"
  StateEntry entry;
};

// The weights of one layer of the model, including those of layers inside it: trainable weights
// first. Names are unique.
struct LayerWeights {
  std::string layer;
  bool nested = false;  // contains other layers
  std::vector<NamedWeight> weights;
};

// Returns the weights of all layers in the order of Keras's files.
std::vector<LayerWeights> weights_by_layer(const Model& model);
// Returns the weights that belong to the model itself and to none of its layers.
LayerWeights top_level_weights(const Model& model);

// Returns an empty string if the stored tensor fits the weight, else the reason: " needs shape (3,
// 2), the file has (4, 2)". Numbers are converted to another dtype, but int8 codes are never used
// as numbers.
std::string misfit(const TensorSpec& needed, const TensorSpec& stored);

// Throws RuntimeError, naming `caller`, if a layer in `root` has not been built.
void require_built(const std::string& caller, const Layer& root);
// Throws RuntimeError, naming `caller`, if called inside one of several replicas: state must be
// read and set outside.
void require_no_replica(const std::string& caller);

}  // namespace keel
