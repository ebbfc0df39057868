// The weights of a model in the order and under the names of Keras's files.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>

namespace keel {

struct NamedWeight {
  std::string name;  // in the layer's group: "dense/kernel:0"
  StateEntry entry;
};

// Of one layer of the model: trainable ones first, then the others; those of the layers in it
// too, if any. Names are unique.
struct LayerWeights {
  std::string layer;
  bool nested = false;  // has layers in it
  std::vector<NamedWeight> weights;
};

std::vector<LayerWeights> weights_by_layer(const Model& model);
// Those that belong to the model itself and to none of its layers.
LayerWeights top_level_weights(const Model& model);

// Empty if what a file has is what a weight needs, else why not: " needs shape (3, 2), the file has
// (4, 2)". Numbers are converted, but codes of int8 are not to be taken for the numbers themselves.
std::string misfit(const TensorSpec& needed, const TensorSpec& stored);

// RuntimeError, naming `caller`, if a layer in `root` has not made its weights yet.
void require_built(const std::string& caller, const Layer& root);
// RuntimeError, naming `caller`, inside a replica of several: state is read and set outside.
void require_no_replica(const std::string& caller);

}  // namespace keel
