// The groups of Keras 3's weight files, which contain the weights of a model's layers.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>

namespace keel {

// The weights of one layer, or a part of them, in one group of the file.
struct WeightGroup {
  std::string path;  // from the root: "layers/functional/layers/dense_1"; empty for the model
  std::string name;  // name of the layer; attribute of the group
  std::vector<StateEntry> weights;  // the layer's own weights: trainable first
  const Layer* layer = nullptr;
  // For weights that Keras keeps in a layer inside the layer (WeightAttributes): the path of the
  // layer that held them in earlier releases, and their positions in it.
  std::string owner_path = {};
  std::string attribute = {};  // empty for other groups
  std::vector<size_t> positions = {};
  // For a layer with such groups: the number of weights in them.
  size_t weights_inside = 0;
};

// Returns the groups of a model. Layers of a model are named by their class names in snake case,
// numbered "_1", "_2", ... from the second layer of a class, in the order of layers(). Layers
// inside any other layer are named by the attribute that holds them in Keras. A layer that is
// reached twice is listed once, at its first position.
std::vector<WeightGroup> weight_groups(const Model& model);

}  // namespace keel
