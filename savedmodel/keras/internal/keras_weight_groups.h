// The groups of Keras 3's weight files, in which the weights of a model's layers lie.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>

namespace keel {

struct WeightGroup {
  std::string path;  // from the root: "layers/functional/layers/dense_1"; empty for the model
  std::string name;  // of the layer; the group's attribute
  std::vector<StateEntry> weights;  // own ones: trainable first, then the others
  const Layer* layer = nullptr;
  // Of weights that Keras keeps in a layer inside the layer (WeightAttributes): where earlier
  // releases had them, the layer's path and the weights' positions there.
  std::string owner_path = {};
  std::string attribute = {};  // empty for other groups
  std::vector<size_t> positions = {};
  // Of a layer that has such groups: how many weights they have.
  size_t weights_inside = 0;
};

// Layers of a model go by their class names in snake case, numbered "_1", "_2", ... from the second
// of a class on, in the order of layers(); layers of any other layer by the attribute that holds
// them in Keras. A layer reached twice counts once, at the first place.
std::vector<WeightGroup> weight_groups(const Model& model);

}  // namespace keel
