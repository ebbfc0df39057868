// The names under which a layer holds the layers in it.
#pragma once

#include <string>
#include <vector>

namespace keel {

// Layers whose parts Keras's weights files name by the attribute that holds them, as
// "lstm/cell/vars/0", have this class as a further base.
class SublayerAttributes {
 public:
  virtual ~SublayerAttributes() = default;
  // One for each of Layer::sublayers(), in their order: {"forward_layer", "backward_layer"}.
  // Empty for those that hold no weights.
  virtual std::vector<std::string> sublayer_attributes() const = 0;
};

}  // namespace keel
