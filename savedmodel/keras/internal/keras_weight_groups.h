// The groups of Keras 3's weight files, which contain the weights of a model's layers.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/keras/internal/dynamic_tables.h>

namespace keel {

// The group of a layer.
struct WeightGroup {
  std::string path;  // from the root: "layers/functional/layers/dense_1"; empty for the model
  std::string name;  // name of the layer, the group's attribute
  std::vector<StateEntry> weights;  // without those of sublayers, in the order of Keras
  const Layer* layer = nullptr;
  // For weights that Keras stores in a layer inside the layer (WeightAttributes): the path of the
  // layer, in whose group earlier releases stored them, and their positions there.
  std::string owner_path = {};
  std::string attribute = {};  // empty for other groups
  std::vector<size_t> positions = {};
  // For a layer that has such groups: the total number of their weights.
  size_t weights_inside = 0;
  std::vector<NamedDynamicTable> dynamic_tables = {};  // are not among the weights
};

// Returns the groups of a model. Layers of a model are named by their class in snake case, with
// "_1", "_2", ... from the second layer of a class on, in the order of layers(). Sublayers of any
// other layer are named by the attribute that holds them in Keras. A layer that is reached twice
// has one group, at the first place.
std::vector<WeightGroup> weight_groups(const Model& model);

}  // namespace keel
