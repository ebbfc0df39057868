// Layers that files may name, and how one layer is written to and read from a config.
#pragma once

#include <keel/framework/config/registry.h>
#include <keel/layers/layer.h>

namespace keel {

// All built-in layers; add your own with layer_registry().add<MyLayer>(), where MyLayer has
// kClassName ("Package>MyLayer" by Keras's convention), Options with `fields`, a constructor from
// Options, and get_config().
Registry<Layer>& layer_registry();

namespace layers {

// {"class_name": ..., "config": ...}, with `trainable` as it is now.
Config serialize(const Layer& layer);
// A new layer, not built. ValueError for an unknown class or key, TypeError for a value of a
// wrong kind. Keys "module", "registered_name" and "build_config" beside the two are ignored.
LayerHandle<Layer> deserialize(const Config& config);

}  // namespace layers
}  // namespace keel
