// The registry of layer classes that files may name, and the conversion of a layer to and from a
// config.
#pragma once

#include <keel/framework/config/registry.h>
#include <keel/layers/layer.h>

namespace keel {

// Returns the registry with all built-in layers. Add your own layer with
// layer_registry().add<MyLayer>(). MyLayer needs kClassName ("Package>MyLayer" by Keras's
// convention), Options with `fields`, a constructor from Options, and get_config().
Registry<Layer>& layer_registry();

namespace layers {

// Returns {"class_name": ..., "config": ...} with the layer's current value of `trainable`. Each
// occurrence of a layer that the config contains several times has the same "shared_object_id".
Config serialize(const Layer& layer);
// Creates a new layer, which is not built yet. Throws ValueError for an unknown class or key, and
// TypeError for a value of a wrong type. The keys "module", "registered_name" and "build_config"
// next to "class_name" and "config" are ignored. Configs inside it with the same "shared_object_id"
// and class give one layer.
LayerHandle<Layer> deserialize(const Config& config);

}  // namespace layers
}  // namespace keel
