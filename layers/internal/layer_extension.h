// LayerExtension: the layers of a library that is linked in addition to keel_layers.
#pragma once

#include <keel/layers/registry.h>

namespace keel::internal {

// Adds layers to layer_registry() in every program that links the library. A library defines one
// static object, by KEEL_DEFINE_LAYER_EXTENSION.
class LayerExtension {
 public:
  using Add = void (*)(Registry<Layer>&);

  // `add` is called when the registry is made, or now if it exists.
  explicit LayerExtension(Add add);
  LayerExtension(const LayerExtension&) = delete;
  LayerExtension& operator=(const LayerExtension&) = delete;

 private:
  friend void add_extensions(Registry<Layer>& registry);
  const Add add_;
  const LayerExtension* const next_;
};

// Adds the layers of all libraries.
void add_extensions(Registry<Layer>& registry);

}  // namespace keel::internal

// Defines the function keel::internal::register_<library>_layers(registry), which adds the layers
// of a list KEEL_<...>_LAYERS(X).
#define KEEL_DEFINE_LAYER_LIST(library, LIST)                                                 \
  namespace keel::internal {                                                                  \
  LIST(KEEL_DECLARE_LAYER)                                                                    \
  static void register_##library##_layers(Registry<Layer>& registry) { LIST(KEEL_ADD_LAYER) } \
  }
#define KEEL_DECLARE_LAYER(name) KEEL_DECLARE_REGISTRATION(Layer, name)
#define KEEL_ADD_LAYER(name) register_##name(registry);
// Defines this function and the LayerExtension of the library keel_<library>, and the symbol that
// its CMake target makes the linker look for, so that the linker keeps the source.
#define KEEL_DEFINE_LAYER_EXTENSION(library, LIST)                              \
  KEEL_DEFINE_LAYER_LIST(library, LIST)                                         \
  namespace keel::internal {                                                    \
  static const LayerExtension library##_extension(register_##library##_layers); \
  }                                                                             \
  extern "C" const char keel_##library##_is_linked = 1;
