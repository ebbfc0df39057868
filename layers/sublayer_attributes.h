// Attribute names under which Keras stores sublayers and weights in its weights files.
#pragma once

#include <string>
#include <vector>

namespace keel {

// Additional base class of layers whose sublayers Keras's weights files name by the attribute that
// holds them, for example "lstm/cell/vars/0".
class SublayerAttributes {
 public:
  virtual ~SublayerAttributes() = default;
  // Returns one name for each of Layer::sublayers(), in the same order: {"forward_layer",
  // "backward_layer"}. The name is empty for a sublayer without weights.
  virtual std::vector<std::string> sublayer_attributes() const = 0;
};

// Additional base class of layers that own weights which Keras's layer keeps in sublayers, for
// example "feature_cross/dense/vars/0".
class WeightAttributes {
 public:
  virtual ~WeightAttributes() = default;
  // Returns the Keras sublayer of each weight among state_entries(), in the same order:
  // {"down_proj_dense", "dense", "dense"}.
  virtual std::vector<std::string> weight_attributes() const = 0;
};

}  // namespace keel
